//! Memory for request bodies. A body occupies memory before the service knows its content, until
//! its client has sent it.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{Error, Result, telemetry};

/// Memory for the bodies of all connections together.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    bytes: usize,
    taken: AtomicUsize,
    /// Bytes used per network, by bodies that count for a network.
    of_networks: Mutex<HashMap<IpAddr, usize>>,
}

/// The memory reserved for one body. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    memory: &'a BodyMemory,
    bytes: usize,
    /// The network that the body counts for, and the network's maximum.
    network: Option<(IpAddr, usize)>,
}

impl BodyMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, taken: AtomicUsize::new(0), of_networks: Mutex::default() }
    }

    pub(crate) fn reserve(&self) -> Reservation<'_> {
        Reservation { memory: self, bytes: 0, network: None }
    }

    /// An empty reservation. All bodies from `network` together get an eighth of the memory, or
    /// `least` bytes if that is more.
    pub(crate) fn reserve_for(&self, network: Option<IpAddr>, least: usize) -> Reservation<'_> {
        Reservation { network: network.map(|network| (network, least.max(self.bytes / 8))), ..self.reserve() }
    }

    fn of_networks(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.of_networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// Grows the reservation to `bytes`. [`Error::Overload`] when too little memory is left.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        if let Some((network, most)) = self.network {
            let mut of_networks = self.memory.of_networks();
            let taken = of_networks.entry(network).or_default();
            if *taken + more > most {
                drop(of_networks);
                telemetry::count_refused("bodies");
                return Err(Error::overload("too many bodies are being received from your network already"));
            }
            *taken += more;
        }
        self.bytes += more;
        let taken = self.memory.taken.fetch_add(more, Ordering::Relaxed);
        if taken.saturating_add(more) > self.memory.bytes {
            // Dropping the reservation releases it.
            telemetry::count_refused("bodies");
            return Err(Error::overload("too many bodies are being received already"));
        }
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.memory.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        if let Some((network, _)) = self.network {
            let mut of_networks = self.memory.of_networks();
            if let Entry::Occupied(mut taken) = of_networks.entry(network) {
                *taken.get_mut() -= self.bytes;
                if *taken.get() == 0 {
                    taken.remove();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_released() {
        let memory = BodyMemory::new(100);
        let (mut one, mut other) = (memory.reserve(), memory.reserve());
        assert!(one.grow_to(60).is_ok() && one.grow_to(40).is_ok() && other.grow_to(40).is_ok());
        assert!(other.grow_to(41).is_err(), "one byte too many");
        drop(other);
        assert!(one.grow_to(100).is_ok());
        drop(one);
        assert_eq!(memory.taken.into_inner(), 0);
    }

    #[test]
    fn no_network_has_more_than_an_eighth() {
        let memory = BodyMemory::new(80);
        let of = |n: u8| memory.reserve_for(Some(IpAddr::from([192, 0, 2, n])), 1);
        let (mut one, mut same, mut other) = (of(1), of(1), of(2));
        assert!(one.grow_to(6).is_ok() && same.grow_to(4).is_ok() && other.grow_to(10).is_ok());
        assert!(same.grow_to(5).is_err(), "one byte too many");
        drop(one);
        assert!(same.grow_to(10).is_ok(), "a refused reservation holds nothing");
        drop((same, other));
        assert!(memory.of_networks().is_empty());
        assert!(memory.reserve_for(Some(IpAddr::from([192, 0, 2, 1])), 20).grow_to(20).is_ok(), "one body fits");
    }
}
