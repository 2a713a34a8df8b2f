//! How many listeners there may be: each holds a connection for as long as it likes.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Error, Result, telemetry};

/// When a listener that was too many for its address may come again: others leave when they please.
const COME_AGAIN: Duration = Duration::from_secs(10);

/// Places for listeners.
#[derive(Debug)]
pub(crate) struct ListenerSlots {
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

/// A listener's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct ListenerSlot {
    slots: Arc<ListenerSlots>,
    network: Option<IpAddr>,
    _counted: telemetry::UnderWay,
}

impl ListenerSlots {
    /// So many places, and so many for each network, if those are limited.
    pub(crate) fn new(most: usize, most_of_network: Option<NonZero<usize>>) -> Arc<Self> {
        Arc::new(Self { most, most_of_network, taken: Mutex::default(), since: Instant::now() })
    }

    /// A place. [`Error::Unavailable`] when all are taken, [`Error::TooMany`] when `network` has all that it may have.
    pub(crate) fn take(self: &Arc<Self>, network: Option<IpAddr>) -> Result<ListenerSlot> {
        let mut taken = self.taken();
        if taken.all >= self.most {
            telemetry::count_refused("listeners");
            return Err(Error::unavailable("as many listen to this instance as may"));
        }
        if let Some(network) = network {
            let of_network = taken.of_networks.entry(network).or_default();
            if self.most_of_network.is_some_and(|most| *of_network >= most.get()) {
                telemetry::count_refused("listeners");
                let message = format!("as many listen from address {network} as may");
                return Err(Error::TooMany { message, retry_after: COME_AGAIN });
            }
            *of_network += 1;
        }
        taken.all += 1;
        drop(taken);
        Ok(ListenerSlot { slots: Arc::clone(self), network, _counted: telemetry::one_more_listener() })
    }

    /// When they were made.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// How many listen.
    pub(crate) fn taken_by_all(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ListenerSlot {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let slots = ListenerSlots::new(3, NonZero::new(2));
        let of = |n: u8| slots.take(Some(IpAddr::from([192, 0, 2, n])));
        let (one, two) = (of(1), of(1));
        assert!(one.is_ok() && two.is_ok());
        assert!(matches!(of(1), Err(Error::TooMany { .. })), "one too many for its address");
        let three = of(2);
        assert!(three.is_ok());
        assert!(matches!(of(3), Err(Error::Unavailable { .. })), "one too many");
        drop(two);
        assert!(of(1).is_ok());
        drop((one, three));
        assert!(slots.taken().of_networks.is_empty());
        assert_eq!(slots.taken().all, 0);
    }
}
