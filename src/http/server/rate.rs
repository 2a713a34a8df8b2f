//! Rate limits: one for each valid key, and one for each address for requests without a valid key.

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    net::IpAddr,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{
    Error, HttpMessage as _, HttpRequest, ResponseError as _,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{HeaderMap, HeaderName},
    middleware::Next,
    web::Data,
};
use governor::{
    DefaultKeyedRateLimiter, InsufficientCapacity, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
};

use crate::{
    access::key_cache::{self, CachedKey, Known},
    http::{
        Api,
        extract::caller::{self, CheckedKey},
        server::address,
    },
};

/// Burst size, remaining requests, and seconds until the full burst is available again.
pub(crate) const HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];

/// Number of boards that a request may read and still count once.
const BOARDS_PER_REQUEST: usize = 10;

/// Paths for operators, which have no limit.
const EXEMPT: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Interval between two removals of callers whose whole burst is available.
pub(crate) const FORGOTTEN_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of addresses with separate counts. Further addresses share counts, so that memory
/// stays bounded.
const MOST_ADDRESSES: usize = 100_000;

const SHARED_COUNTS: u64 = 4_096;

/// A rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second, in the long run.
    pub per_second: NonZero<u32>,
    /// Requests at once.
    pub burst: NonZero<u32>,
}

impl Rate {
    /// A limit of `per_second`; `None` for 0.
    #[must_use]
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

/// The rate limits of this instance.
#[derive(Debug)]
pub(crate) struct Rates {
    keys: Option<Limiter<String>>,
    addresses: Option<Limiter<(Budget, CountedAddress)>>,
    are_shared: AtomicBool,
    hasher: RandomState,
    clock: DefaultClock,
}

/// The remaining allowance of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowance {
    limit: u32,
    remaining: u32,
    /// Time until the whole burst is available.
    reset: Duration,
    /// Time until the next request, if this one is refused.
    wait: Option<Duration>,
}

impl Rates {
    /// Limits without any counts. `None` is no limit.
    pub(crate) fn new(key: Option<Rate>, address: Option<Rate>) -> Self {
        Self {
            keys: key.map(limiter),
            addresses: address.map(limiter),
            are_shared: AtomicBool::new(false),
            hasher: RandomState::new(),
            clock: DefaultClock::default(),
        }
    }

    /// Removes callers whose whole burst is available.
    pub(crate) fn forget(&self) {
        forget(self.keys.as_ref());
        let addresses = forget(self.addresses.as_ref());
        self.are_shared.store(addresses > MOST_ADDRESSES, Ordering::Relaxed);
    }

    fn of_key(&self, id: &str) -> Option<Counted> {
        self.charge(Payer::Key(id.to_owned()), NonZero::<u32>::MIN)
    }

    fn of_address(&self, address: IpAddr) -> Option<Counted> {
        self.charge(Payer::Address(address), NonZero::<u32>::MIN)
    }

    /// Counts `requests` for `payer`.
    fn charge(&self, payer: Payer, requests: NonZero<u32>) -> Option<Counted> {
        let allowance = match &payer {
            Payer::Key(id) => self.count(self.keys.as_ref()?, id, requests),
            Payer::Address(address) => self.spend(Budget::Requests, *address, requests)?,
        };
        Some(Counted { payer, allowance })
    }

    /// Whether `address` may look up a key although it has made too many requests.
    fn may_look_up(&self, address: IpAddr) -> bool {
        self.spend(Budget::KeyLookups, address, NonZero::<u32>::MIN).is_none_or(|allowance| allowance.wait.is_none())
    }

    /// Whether `address` may make another TLS handshake.
    pub(crate) fn may_shake_hands(&self, address: IpAddr) -> bool {
        self.spend(Budget::Handshakes, address, NonZero::<u32>::MIN).is_none_or(|allowance| allowance.wait.is_none())
    }

    fn spend(&self, budget: Budget, address: IpAddr, requests: NonZero<u32>) -> Option<Allowance> {
        Some(self.count(self.addresses.as_ref()?, &(budget, self.counted(address)), requests))
    }

    fn counted(&self, address: IpAddr) -> CountedAddress {
        let network = address::network(address);
        if self.are_shared.load(Ordering::Relaxed) {
            CountedAddress::Shared(self.hasher.hash_one(network) % SHARED_COUNTS)
        } else {
            CountedAddress::Address(network)
        }
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
    fn write(self, headers: &mut HeaderMap) {
        let values = [self.limit.into(), self.remaining.into(), whole_seconds(self.reset)];
        for (name, value) in HEADERS.into_iter().zip(values) {
            headers.insert(name, value.into());
        }
    }
}

/// The caller that a request counts for.
#[derive(Debug, Clone)]
enum Payer {
    Key(String),
    Address(IpAddr),
}

#[derive(Debug)]
struct Counted {
    payer: Payer,
    allowance: Allowance,
}

impl Counted {
    fn refusal(&self) -> Option<crate::Error> {
        let retry_after = self.allowance.wait?;
        let whose = match &self.payer {
            Payer::Key(id) => format!("key {id}"),
            Payer::Address(address) => format!("address {address}"),
        };
        Some(crate::Error::TooMany {
            code: crate::Code::RateLimited,
            message: format!("{whose} has made too many requests"),
            retry_after,
        })
    }
}

/// The caller that a request has counted for, and the caller's burst.
#[derive(Clone)]
struct Charged {
    payer: Payer,
    burst: u32,
}

/// Refuses the requests of a caller that has made too many, and adds the rate limit headers.
pub(crate) async fn limit(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let counted = counted(&request).await;
    if let Some(counted) = &counted {
        request.extensions_mut().insert(Charged { payer: counted.payer.clone(), burst: counted.allowance.limit });
    }
    let refusal =
        counted.as_ref().and_then(Counted::refusal).or_else(|| caller::authorization(request.request()).err());
    let mut response = match refusal {
        Some(error) => request.into_response(error.error_response()).map_into_right_body(),
        None => next.call(request).await?.map_into_left_body(),
    };
    // `charge` may have counted the request again.
    let last = response.request().extensions_mut().remove().or(counted);
    if let Some(counted) = last {
        counted.allowance.write(response.headers_mut());
    }
    Ok(response)
}

/// Counts a request that reads this many boards once for each ten of them, but at most for a burst.
/// [`crate::Error::TooMany`] when the caller has made too many requests for that.
pub(crate) fn charge(request: &HttpRequest, boards: usize) -> crate::Result<()> {
    let charged = request.extensions().get::<Charged>().cloned();
    let (Some(Charged { payer, burst }), Some(api)) = (charged, request.app_data::<Data<Api>>()) else { return Ok(()) };
    let more = u32::try_from(boards.saturating_sub(1) / BOARDS_PER_REQUEST).unwrap_or(u32::MAX);
    // The request has already counted once.
    let Some(more) = NonZero::new(more.min(burst.saturating_sub(1))) else { return Ok(()) };
    let Some(counted) = api.rates.charge(payer, more) else { return Ok(()) };
    let refusal = counted.refusal();
    request.extensions_mut().insert(counted);
    refusal.map_or(Ok(()), Err)
}

/// Counts a request. A request with a key that this instance knows counts for the key, from any
/// address. All other requests count for their address, including those with a key that must first
/// be looked up.
async fn counted(request: &ServiceRequest) -> Option<Counted> {
    let api = request.app_data::<Data<Api>>()?;
    if EXEMPT.contains(&request.path()) {
        return None;
    }
    let authorization = caller::authorization(request.request()).ok().flatten();
    let authorization = authorization.as_deref();
    let known = key_cache::known(&api.instance.keys, authorization);
    if let Known::Works(known) = known {
        return of_known(api, request, &known);
    }
    let address = address::of(api, request.request())?;
    let counted = api.rates.of_address(address);
    if matches!(known, Known::Unknown)
        && counted.as_ref().is_some_and(|counted| counted.allowance.wait.is_some())
        && api.rates.may_look_up(address)
        && let Ok(known) = key_cache::find(&api.instance.keys, authorization).await
    {
        return of_known(api, request, &known);
    }
    counted
}

fn of_known(api: &Api, request: &ServiceRequest, known: &Arc<CachedKey>) -> Option<Counted> {
    request.extensions_mut().insert(CheckedKey::new(known));
    api.rates.of_key(&known.key.id)
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

    #[test]
    fn a_burst_is_counted_down_and_then_refused() {
        let rates = Rates::new(rate(1, 3), None);
        for remaining in [2, 1, 0] {
            let allowance = rates.of_key("a").unwrap_or_else(|| panic!("not counted")).allowance;
            assert_eq!((allowance.limit, allowance.remaining, allowance.wait), (3, remaining, None));
            assert_eq!(allowance.reset, Duration::from_secs(3 - u64::from(remaining)));
        }
        let refused = rates.of_key("a").and_then(|counted| counted.allowance.wait);
        assert!(refused.is_some_and(|wait| wait <= Duration::from_secs(1)), "{refused:?}");
        assert_eq!(rates.of_key("b").map(|counted| counted.allowance.remaining), Some(2), "each key has its own count");
        assert!(rates.of_address(address("192.0.2.1")).is_none(), "addresses have no limit here");
    }

    #[test]
    fn a_request_may_count_as_several() {
        let rates = Rates::new(rate(1, 20), None);
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
        let rates = Rates::new(None, rate(1, 3));
        let remaining = |text: &str| rates.of_address(address(text)).map(|counted| counted.allowance.remaining);
        assert_eq!(remaining("2001:db8:1:2::1"), Some(2));
        assert_eq!(remaining("2001:db8:1:2:ffff::9"), Some(1));
        assert_eq!(remaining("2001:db8:1:3::1"), Some(2));
        assert_eq!(remaining("192.0.2.1"), Some(2));
        assert_eq!(remaining("192.0.2.2"), Some(2));
    }

    #[test]
    fn an_address_without_requests_left_may_look_up_keys_at_its_rate() {
        let rates = Rates::new(None, rate(1, 3));
        let lookups = |text: &str| (0..10).filter(|_| rates.may_look_up(address(text))).count();
        assert_eq!(lookups("192.0.2.1"), 3);
        assert_eq!(lookups("192.0.2.2"), 3, "each address has its own count");
    }

    #[test]
    fn no_number_of_addresses_fills_the_memory() {
        // One request an hour, so that none is forgotten while this runs.
        let addresses = RateLimiter::keyed(Quota::per_hour(NonZero::<u32>::MIN)).with_middleware();
        let rates = Rates { addresses: Some(addresses), ..Rates::new(None, None) };
        let known = || rates.addresses.as_ref().map_or(0, Limiter::len);
        for number in 0..=u32::try_from(MOST_ADDRESSES).unwrap_or_default() {
            rates.of_address(IpAddr::V4(number.into()));
        }
        rates.forget();
        let before = known();
        for number in 0..1_000_000_u32 {
            rates.of_address(IpAddr::V4((number + (1 << 24)).into()));
        }
        assert!(known() as u64 <= before as u64 + SHARED_COUNTS, "{} after {before}", known());
    }

    #[test]
    fn idle_callers_are_forgotten() {
        let rates = Rates::new(None, rate(1_000_000, 1));
        for number in 0..1_000_u32 {
            rates.of_address(IpAddr::V4(number.into()));
        }
        // Until the microsecond has passed.
        while rates.addresses.as_ref().is_some_and(|addresses| !addresses.is_empty()) {
            rates.forget();
        }
    }
}
