//! Rate limits: one for each valid key, and one for each address for requests without a valid key.

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    net::IpAddr,
    num::NonZero,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use actix_web::http::header::{HeaderMap, HeaderName};
use governor::{
    DefaultKeyedRateLimiter, InsufficientCapacity, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
};

use crate::{Code, Error, Result, http::server::address};

/// Burst size, remaining requests, and seconds until the full burst is available again.
pub(crate) const HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];

/// Interval between two removals of callers whose whole burst is available.
pub(crate) const FORGOTTEN_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of addresses with separate counts. Further addresses share counts, so that memory
/// stays bounded.
const MOST_ADDRESSES: usize = 100_000;

const SHARED_COUNTS: u64 = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second, in the long run.
    pub per_second: NonZero<u32>,
    pub burst: NonZero<u32>,
}

impl Rate {
    /// A limit of `per_second`; `None` for 0.
    pub fn new(per_second: u32, burst: NonZero<u32>) -> Option<Self> {
        NonZero::new(per_second).map(|per_second| Self { per_second, burst })
    }
}

/// The budgets of an address. Each has a separate count, so that requests without a key cannot use
/// up the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Budget {
    Requests,
    /// Look-ups of unknown keys beyond [`Budget::Requests`]: a valid key must be accepted from a
    /// busy address.
    KeyLookups,
    /// TLS handshakes, each of which costs more than most requests. They come before any key.
    Handshakes,
}

/// The unit that limits count for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CountedAddress {
    /// An IPv4 address, or an IPv6 network of 64 bits, which belongs to one subscriber.
    Address(IpAddr),
    /// One of the shared counts.
    Shared(u64),
}

type Limiter<K> = DefaultKeyedRateLimiter<K, StateInformationMiddleware>;

#[derive(Debug)]
pub(crate) struct Rates {
    keys: Option<Limiter<String>>,
    addresses: Option<Limiter<(Budget, CountedAddress)>>,
    /// Boards that the first score of a key creates.
    boards: Option<Limiter<String>>,
    are_shared: AtomicBool,
    hasher: RandomState,
    clock: DefaultClock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) limit: u32,
    remaining: u32,
    /// Time until the whole burst is available.
    reset: Duration,
    /// Time until the next request, if this one is refused.
    pub(crate) wait: Option<Duration>,
}

impl Rates {
    /// Limits without any counts: of a key, of an address, and of new boards per key and minute. `None` is
    /// no limit.
    pub(crate) fn new(key: Option<Rate>, address: Option<Rate>, boards: Option<NonZero<u32>>) -> Self {
        Self {
            keys: key.map(limiter),
            addresses: address.map(limiter),
            boards: boards.map(|boards| RateLimiter::keyed(Quota::per_minute(boards)).with_middleware()),
            are_shared: AtomicBool::new(false),
            hasher: RandomState::new(),
            clock: DefaultClock::default(),
        }
    }

    /// Removes callers whose whole burst is available.
    pub(crate) fn forget(&self) {
        forget(self.keys.as_ref());
        forget(self.boards.as_ref());
        let addresses = forget(self.addresses.as_ref());
        self.are_shared.store(addresses > MOST_ADDRESSES, Ordering::Relaxed);
    }

    /// Counts `requests` for `payer`. Returns `None` if the payer has no limit.
    pub(crate) fn charge(&self, payer: Payer, requests: NonZero<u32>) -> Option<Charge> {
        let allowance = match &payer {
            Payer::Key(id) => self.count(self.keys.as_ref()?, id, requests),
            Payer::Address(address) => self.spend(Budget::Requests, *address, requests)?,
        };
        Some(Charge { payer, allowance })
    }

    /// Counts a board that a key creates.
    ///
    /// [`Error::TooMany`] if the key has created too many within a minute.
    pub(crate) fn charge_board(&self, key_id: &str) -> Result<()> {
        let Some(boards) = &self.boards else { return Ok(()) };
        let Some(retry_after) = self.count(boards, &key_id.to_owned(), NonZero::<u32>::MIN).wait else { return Ok(()) };
        let message = format!("key {key_id} has created too many boards of templates");
        Err(Error::TooMany { code: Code::RateLimited, message, retry_after })
    }

    /// Whether `address` may look up a key although it has made too many requests.
    pub(crate) fn may_look_up(&self, address: IpAddr) -> bool {
        self.spend(Budget::KeyLookups, address, NonZero::<u32>::MIN).is_none_or(|allowance| allowance.wait.is_none())
    }

    /// Whether `address` may make another TLS handshake.
    pub(crate) fn may_shake_hands(&self, address: IpAddr) -> bool {
        self.spend(Budget::Handshakes, address, NonZero::<u32>::MIN).is_none_or(|allowance| allowance.wait.is_none())
    }

    fn spend(&self, budget: Budget, address: IpAddr, requests: NonZero<u32>) -> Option<Allowance> {
        let network = address::network(address);
        let counted = if self.are_shared.load(Ordering::Relaxed) {
            CountedAddress::Shared(self.hasher.hash_one(network) % SHARED_COUNTS)
        } else {
            CountedAddress::Address(network)
        };
        Some(self.count(self.addresses.as_ref()?, &(budget, counted), requests))
    }

    fn count<K: Hash + Eq + Clone>(&self, limiter: &Limiter<K>, caller: &K, requests: NonZero<u32>) -> Allowance {
        let counted = match limiter.check_key_n(caller, requests) {
            Ok(counted) => counted,
            // More than a burst counts as a whole one, because no wait would suffice for more.
            Err(InsufficientCapacity(burst)) => {
                let burst = NonZero::new(burst).unwrap_or(NonZero::<u32>::MIN);
                return self.count(limiter, caller, burst);
            }
        };
        let (quota, remaining, wait) = match counted {
            Ok(state) => (state.quota(), state.remaining_burst_capacity(), None),
            Err(refusal) => (refusal.quota(), 0, Some(refusal.wait_time_from(self.clock.now()))),
        };
        let limit = quota.burst_size().get();
        Allowance { limit, remaining, reset: quota.replenish_interval() * (limit - remaining.min(limit)), wait }
    }
}

fn limiter<K: Hash + Eq + Clone>(rate: Rate) -> Limiter<K> {
    let quota = Quota::per_second(rate.per_second).allow_burst(rate.burst);
    RateLimiter::keyed(quota).with_middleware()
}

/// Removes callers whose whole burst is available; returns the number of others.
fn forget<K: Hash + Eq + Clone>(limiter: Option<&Limiter<K>>) -> usize {
    limiter.map_or(0, |limiter| {
        limiter.retain_recent();
        limiter.shrink_to_fit();
        limiter.len()
    })
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Allowance {
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let values = [self.limit.into(), self.remaining.into(), whole_seconds(self.reset)];
        for (name, value) in HEADERS.into_iter().zip(values) {
            headers.insert(name, value.into());
        }
    }
}

/// The caller that a request counts for.
#[derive(Debug, Clone)]
pub(crate) enum Payer {
    Key(String),
    Address(IpAddr),
}

#[derive(Debug)]
pub(crate) struct Charge {
    pub(crate) payer: Payer,
    pub(crate) allowance: Allowance,
}

impl Charge {
    pub(crate) fn refusal(&self) -> Option<Error> {
        let retry_after = self.allowance.wait?;
        let whose = match &self.payer {
            Payer::Key(id) => format!("key {id}"),
            Payer::Address(address) => format!("address {address}"),
        };
        Some(Error::TooMany {
            code: Code::RateLimited,
            message: format!("{whose} has made too many requests"),
            retry_after,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u32, burst: u32) -> Option<Rate> {
        Rate::new(per_second, NonZero::new(burst)?)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Counts one request.
    fn charge_one(rates: &Rates, payer: Payer) -> Option<Allowance> {
        rates.charge(payer, NonZero::<u32>::MIN).map(|counted| counted.allowance)
    }

    #[test]
    fn a_burst_is_counted_down_and_then_refused() {
        let rates = Rates::new(rate(1, 3), None, None);
        let charge = |key: &str| charge_one(&rates, Payer::Key(key.to_owned()));
        for remaining in [2, 1, 0] {
            let allowance = charge("a").unwrap_or_else(|| panic!("not counted"));
            assert_eq!((allowance.limit, allowance.remaining, allowance.wait), (3, remaining, None));
            assert_eq!(allowance.reset, Duration::from_secs(3 - u64::from(remaining)));
        }
        let refused = charge("a").and_then(|allowance| allowance.wait);
        assert!(refused.is_some_and(|wait| wait <= Duration::from_secs(1)), "{refused:?}");
        assert_eq!(charge("b").map(|allowance| allowance.remaining), Some(2), "each key has its own count");
        let charged = charge_one(&rates, Payer::Address(address("192.0.2.1")));
        assert!(charged.is_none(), "addresses have no limit here");
    }

    #[test]
    fn a_request_may_count_as_several() {
        let rates = Rates::new(rate(1, 20), None, None);
        let charged = |key: &str, requests| {
            let counted = rates.charge(Payer::Key(key.to_owned()), NonZero::new(requests)?)?;
            Some((counted.allowance.remaining, counted.allowance.wait.is_some()))
        };
        assert_eq!(charged("a", 15), Some((5, false)));
        assert_eq!(charged("a", 6), Some((0, true)), "refused, and not counted");
        assert_eq!(charged("a", 5), Some((0, false)));
        assert_eq!(charged("b", 21), Some((0, false)), "a whole burst");
        assert_eq!(charged("b", 21), Some((0, true)));
    }

    #[test]
    fn addresses_of_one_subscriber_are_counted_together() {
        let rates = Rates::new(None, rate(1, 3), None);
        let remaining = |text: &str| charge_one(&rates, Payer::Address(address(text))).map(|left| left.remaining);
        assert_eq!(remaining("2001:db8:1:2::1"), Some(2));
        assert_eq!(remaining("2001:db8:1:2:ffff::9"), Some(1));
        assert_eq!(remaining("2001:db8:1:3::1"), Some(2));
        assert_eq!(remaining("192.0.2.1"), Some(2));
        assert_eq!(remaining("192.0.2.2"), Some(2));
    }

    #[test]
    fn an_address_without_requests_left_may_look_up_keys_at_its_rate() {
        let rates = Rates::new(None, rate(1, 3), None);
        let lookups = |text: &str| (0..10).filter(|_| rates.may_look_up(address(text))).count();
        assert_eq!(lookups("192.0.2.1"), 3);
        assert_eq!(lookups("192.0.2.2"), 3, "each address has its own count");
    }

    #[test]
    fn no_number_of_addresses_fills_the_memory() {
        // One request an hour, so that none is forgotten while this runs.
        let addresses = RateLimiter::keyed(Quota::per_hour(NonZero::<u32>::MIN)).with_middleware();
        let rates = Rates { addresses: Some(addresses), ..Rates::new(None, None, None) };
        let known = || rates.addresses.as_ref().map_or(0, Limiter::len);
        for number in 0..=u32::try_from(MOST_ADDRESSES).unwrap_or_default() {
            charge_one(&rates, Payer::Address(IpAddr::V4(number.into())));
        }
        rates.forget();
        let before = known();
        for number in 0..1_000_000_u32 {
            charge_one(&rates, Payer::Address(IpAddr::V4((number + (1 << 24)).into())));
        }
        assert!(known() as u64 <= before as u64 + SHARED_COUNTS, "{} after {before}", known());
    }

    #[test]
    fn idle_callers_are_forgotten() {
        let rates = Rates::new(None, rate(1_000_000, 1), None);
        for number in 0..1_000_u32 {
            charge_one(&rates, Payer::Address(IpAddr::V4(number.into())));
        }
        // Until the microsecond has passed.
        while rates.addresses.as_ref().is_some_and(|addresses| !addresses.is_empty()) {
            rates.forget();
        }
    }
}
