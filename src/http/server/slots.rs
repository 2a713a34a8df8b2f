//! Limits on requests that hold their connection for a long time: subscribers, and downloads of
//! whole periods.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Code, Error, Result, telemetry};

/// Retry delay of a refused request, because the end of the other requests is unknown.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// A number of slots, and a lower number for each network.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Kind of requests, for errors.
    kind: &'static str,
    most: usize,
    most_of_network: Option<NonZero<usize>>,
    taken: Mutex<Taken>,
    since: Instant,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of_networks: HashMap<IpAddr, usize>,
}

/// A taken slot. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    network: Option<IpAddr>,
}

impl Slots {
    /// Creates `most` slots, of which a network may take `most_of_network`.
    pub(crate) fn new(kind: &'static str, most: usize, most_of_network: Option<NonZero<usize>>) -> Arc<Self> {
        Arc::new(Self { kind, most, most_of_network, taken: Mutex::default(), since: Instant::now() })
    }

    /// Takes a slot. [`Error::Overload`] when none is left, [`Error::TooMany`] when `network`
    /// has its maximum.
    pub(crate) fn take(self: &Arc<Self>, network: Option<IpAddr>) -> Result<Slot> {
        let mut taken = self.taken();
        if taken.all >= self.most {
            let message = format!("this instance serves its maximum number of {}", self.kind);
            return Err(Error::Overload { code: Code::Overloaded, message, retry_after: RETRY_AFTER });
        }
        if let Some(network) = network {
            let of_network = taken.of_networks.entry(network).or_default();
            if self.most_of_network.is_some_and(|most| *of_network >= most.get()) {
                let message = format!("address {network} has its maximum number of {}", self.kind);
                return Err(Error::TooMany { code: Code::TooManyConnections, message, retry_after: RETRY_AFTER });
            }
            *of_network += 1;
        }
        taken.all += 1;
        drop(taken);
        Ok(Slot { slots: Arc::clone(self), network })
    }

    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    pub(crate) fn taken_by_all(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        taken.all -= 1;
        if let Some(network) = self.network
            && let Entry::Occupied(mut of_network) = taken.of_networks.entry(network)
        {
            *of_network.get_mut() -= 1;
            if *of_network.get() == 0 {
                of_network.remove();
            }
        }
    }
}

/// Maximum concurrent downloads of an instance: in total, per network, and in addition for requests
/// with a key. Each download holds a database connection and a snapshot.
const OPEN_SLOTS: usize = 4;
const SLOTS_OF_NETWORK: Option<NonZero<usize>> = NonZero::new(2);
const KEYED_SLOTS: usize = 2;

#[derive(Debug)]
pub(crate) struct DownloadSlots {
    open: Arc<Slots>,
    keyed: Arc<Slots>,
}

impl DownloadSlots {
    pub(crate) fn new() -> Self {
        Self {
            open: Slots::new("downloads", OPEN_SLOTS, SLOTS_OF_NETWORK),
            keyed: Slots::new("downloads", KEYED_SLOTS, None),
        }
    }

    /// Takes a slot. [`Error::Overload`] or [`Error::TooMany`] if none is free. The key is
    /// checked only if the open slots are taken.
    pub(crate) async fn take(&self, network: Option<IpAddr>, has_key: impl Future<Output = bool>) -> Result<Slot> {
        let taken = match self.open.take(network) {
            Err(_) if has_key.await => self.keyed.take(network),
            taken => taken,
        };
        taken.inspect_err(|_| telemetry::count_refused("downloads"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_released() {
        let slots = Slots::new("subscribers", 3, NonZero::new(2));
        let of = |n: u8| slots.take(Some(IpAddr::from([192, 0, 2, n])));
        let (one, two) = (of(1), of(1));
        assert!(one.is_ok() && two.is_ok());
        assert!(matches!(of(1), Err(Error::TooMany { .. })), "one too many for its address");
        let three = of(2);
        assert!(three.is_ok());
        assert!(matches!(of(3), Err(Error::Overload { .. })), "one too many");
        drop(two);
        assert!(of(1).is_ok());
        drop((one, three));
        assert!(slots.taken().of_networks.is_empty());
        assert_eq!(slots.taken().all, 0);
    }
}
