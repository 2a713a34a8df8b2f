//! How many requests a caller may make: each key that works, and each address that comes without one.
//!
//! A key that signs counts once the signature is right, else whoever has seen its text could use up what its holder may do. Where the signature
//! covers a body, that is when the body has come; until then, what comes with the key's text from one address is held to the key's rate, too.

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
    http::header::{AUTHORIZATION, HeaderMap, HeaderName},
    middleware::Next,
    web::Data,
};
use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
};

use crate::{
    access::key_cache::{self, CachedKey, Known},
    http::{
        Api,
        extract::{caller, signature},
        server::address,
    },
};

/// Requests that may be made at once, what is left of them, and the seconds until all of them may be made again.
pub(crate) const HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];

/// Paths that whoever runs the service asks, however busy it is.
const EXEMPT: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// How often those are forgotten who may make all their requests again.
pub(crate) const FORGOTTEN_EVERY: Duration = Duration::from_secs(1);

/// Addresses that are counted each by itself. Where there are more, some share a count, so that no number of them fills the memory.
const MOST_ADDRESSES: usize = 100_000;

/// Counts that all addresses share then.
const SHARED_COUNTS: u64 = 4_096;

/// How many requests one caller may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second, in the long run.
    pub per_second: NonZero<u32>,
    /// Requests at once.
    pub burst: NonZero<u32>,
}

impl Rate {
    /// So many requests a second; no limit for 0.
    #[must_use]
    pub fn new(per_second: u32, burst: NonZero<u32>) -> Option<Self> {
        NonZero::new(per_second).map(|per_second| Self { per_second, burst })
    }
}

/// What is counted for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// An address; of IPv6 the network of 64 bits, which is what one subscriber has.
    Address(IpAddr),
    /// One of the counts that addresses share.
    Shared(u64),
}

type Limiter<K> = DefaultKeyedRateLimiter<K, StateInformationMiddleware>;

/// The requests of all callers of this instance.
#[derive(Debug)]
pub(crate) struct Rates {
    keys: Option<Limiter<String>>,
    addresses: Option<Limiter<Place>>,
    /// Keys that are looked for although their address has made too many requests.
    lookups: Option<Limiter<Place>>,
    /// Connections over TLS, whatever key is to come by them: to agree upon one costs more than to answer most requests.
    handshakes: Option<Limiter<Place>>,
    /// Requests with the text of a key that signs, and a body over which the signature is still to be checked.
    unproven: Option<Limiter<(String, Place)>>,
    are_many: AtomicBool,
    hasher: RandomState,
    clock: DefaultClock,
}

/// What a caller may still do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowance {
    limit: u32,
    remaining: u32,
    /// Until the limit is whole again.
    reset: Duration,
    /// How long to wait before the next request, for one that has been refused.
    wait: Option<Duration>,
}

impl Rates {
    /// Counts nothing yet; callers without a rate are not counted.
    pub(crate) fn new(key: Option<Rate>, address: Option<Rate>) -> Self {
        Self {
            keys: key.map(limiter),
            addresses: address.map(limiter),
            lookups: address.map(limiter),
            handshakes: address.map(limiter),
            unproven: key.map(limiter),
            are_many: AtomicBool::new(false),
            hasher: RandomState::new(),
            clock: DefaultClock::default(),
        }
    }

    /// Forgets those who may make all their requests again.
    pub(crate) fn forget(&self) {
        forget(self.keys.as_ref());
        forget(self.lookups.as_ref());
        let counts =
            [forget(self.addresses.as_ref()), forget(self.handshakes.as_ref()), forget(self.unproven.as_ref())];
        let most = counts.into_iter().max().unwrap_or_default();
        self.are_many.store(most > MOST_ADDRESSES, Ordering::Relaxed);
    }

    fn of_key(&self, id: &str) -> Option<Counted> {
        let allowance = self.count(self.keys.as_ref()?, &id.to_owned());
        Some(Counted { whose: format!("key {id}"), allowance })
    }

    fn of_address(&self, address: IpAddr) -> Option<Counted> {
        let allowance = self.count(self.addresses.as_ref()?, &self.place(address));
        Some(Counted { whose: format!("address {address}"), allowance })
    }

    fn of_unproven(&self, id: &str, address: IpAddr) -> Option<Counted> {
        let allowance = self.count(self.unproven.as_ref()?, &(id.to_owned(), self.place(address)));
        Some(Counted { whose: format!("key {id} at address {address}"), allowance })
    }

    /// Whether a key may be looked for that came from an address which has made too many requests.
    fn may_look_up(&self, address: IpAddr) -> bool {
        self.lookups.as_ref().is_none_or(|lookups| self.count(lookups, &self.place(address)).wait.is_none())
    }

    /// Whether whoever connects from this address may agree upon TLS once more.
    pub(crate) fn may_shake_hands(&self, address: IpAddr) -> bool {
        self.handshakes.as_ref().is_none_or(|handshakes| self.count(handshakes, &self.place(address)).wait.is_none())
    }

    fn place(&self, address: IpAddr) -> Place {
        let network = address::network(address);
        if self.are_many.load(Ordering::Relaxed) {
            Place::Shared(self.hasher.hash_one(network) % SHARED_COUNTS)
        } else {
            Place::Address(network)
        }
    }

    fn count<K: Hash + Eq + Clone>(&self, limiter: &Limiter<K>, caller: &K) -> Allowance {
        let (quota, remaining, wait) = match limiter.check_key(caller) {
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

/// Forgets those who may make all their requests again; gives how many are left.
fn forget<K: Hash + Eq + Clone>(limiter: Option<&Limiter<K>>) -> usize {
    limiter.map_or(0, |limiter| {
        limiter.retain_recent();
        limiter.shrink_to_fit();
        limiter.len()
    })
}

/// Seconds, rounded up.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Allowance {
    fn tell(self, headers: &mut HeaderMap) {
        let values = [self.limit.into(), self.remaining.into(), whole_seconds(self.reset)];
        for (name, value) in HEADERS.into_iter().zip(values) {
            headers.insert(name, value.into());
        }
    }
}

/// Whom a request was counted for.
#[derive(Debug)]
struct Counted {
    whose: String,
    allowance: Allowance,
}

impl Counted {
    fn refusal(&self) -> Option<crate::Error> {
        let retry_after = self.allowance.wait?;
        Some(crate::Error::TooMany { message: format!("{} has made too many requests", self.whose), retry_after })
    }
}

/// A request with the text of a key that signs, which is counted once its body has come.
struct Unproven {
    known: Arc<CachedKey>,
    address: Option<IpAddr>,
}

/// Refuses a request of a caller who has made too many, and tells each what is left.
pub(crate) async fn limit(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let mut counted = counted(&request).await;
    let mut response = match counted.as_ref().and_then(Counted::refusal) {
        Some(error) => request.into_response(error.error_response()).map_into_right_body(),
        None => next.call(request).await?.map_into_left_body(),
    };
    // What was refused before its body was looked at counts for the address, too.
    settle(response.request(), |_| false).ok();
    counted = response.request().extensions_mut().remove().or(counted);
    if let Some(counted) = counted {
        counted.allowance.tell(response.headers_mut());
    }
    Ok(response)
}

/// Counts a request that waited for its body: for its key if the signature `is_right`, and for its address if not. [`crate::Error::TooMany`] when
/// that one has made too many.
pub(crate) fn settle(request: &HttpRequest, is_right: impl FnOnce(&CachedKey) -> bool) -> crate::Result<()> {
    let unproven = request.extensions_mut().remove();
    let (Some(Unproven { known, address }), Some(api)) = (unproven, request.app_data::<Data<Api>>()) else {
        return Ok(());
    };
    let counted = if is_right(&known) {
        api.rates.of_key(&known.key.id)
    } else {
        address.and_then(|address| api.rates.of_address(address))
    };
    let refusal = counted.as_ref().and_then(Counted::refusal);
    if let Some(counted) = counted {
        request.extensions_mut().insert(counted);
    }
    refusal.map_or(Ok(()), Err)
}

/// Counts a request for whoever made it, unless that is only known once its body has come. A key that this instance knows is counted by itself,
/// wherever it comes from; all else counts for the address, also what brings a key that has first to be looked for. An address that has made too
/// many requests keeps out no key that works: so many a second are looked for at once.
async fn counted(request: &ServiceRequest) -> Option<Counted> {
    let api = request.app_data::<Data<Api>>()?;
    if EXEMPT.contains(&request.path()) {
        return None;
    }
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorization = authorization.map(|text| caller::as_sent(request.path(), text));
    let authorization = authorization.as_deref();
    let address = address::of(api, request.request());
    let known = key_cache::known(&api.instance.keys, authorization);
    if let Known::Works(known) = known {
        return of_known(api, request, known, address);
    }
    let counted = api.rates.of_address(address?);
    if matches!(known, Known::Unknown)
        && counted.as_ref().is_some_and(|counted| counted.allowance.wait.is_some())
        && api.rates.may_look_up(address?)
        && let Ok(known) = key_cache::find(&api.instance.keys, authorization).await
    {
        return of_known(api, request, known, address);
    }
    counted
}

fn of_known(api: &Api, request: &ServiceRequest, known: Arc<CachedKey>, address: Option<IpAddr>) -> Option<Counted> {
    let id = &known.key.id;
    if known.signing_secret.is_none() {
        return api.rates.of_key(id);
    }
    if !signature::has_body(request.method()) {
        let is_right = signature::is_right(request.request(), &known, &[]);
        return if is_right { api.rates.of_key(id) } else { api.rates.of_address(address?) };
    }
    let counted = address.and_then(|address| api.rates.of_unproven(id, address));
    if counted.as_ref().is_some_and(|counted| counted.allowance.wait.is_some()) {
        return counted;
    }
    request.extensions_mut().insert(Unproven { known, address });
    None
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
        assert_eq!(rates.of_key("b").map(|counted| counted.allowance.remaining), Some(2), "each key by itself");
        assert!(rates.of_address(address("192.0.2.1")).is_none(), "addresses have no limit here");
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
    fn an_address_that_has_made_too_many_requests_has_so_many_keys_looked_for() {
        let rates = Rates::new(None, rate(1, 3));
        let looked_for = |text: &str| (0..10).filter(|_| rates.may_look_up(address(text))).count();
        assert_eq!(looked_for("192.0.2.1"), 3);
        assert_eq!(looked_for("192.0.2.2"), 3, "each address by itself");
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
    fn those_who_may_ask_again_are_forgotten() {
        let rates = Rates::new(None, rate(1_000_000, 1));
        for number in 0..1_000_u32 {
            rates.of_address(IpAddr::V4(number.into()));
        }
        // Until the millionth of a second is over.
        while rates.addresses.as_ref().is_some_and(|addresses| !addresses.is_empty()) {
            rates.forget();
        }
    }
}
