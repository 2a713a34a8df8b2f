//! The rate limit of a request: by its key, or by its address without a valid key.

use std::{borrow::Cow, num::NonZero, sync::Arc, time::Instant};

use actix_web::{
    Error, HttpMessage as _, HttpRequest, ResponseError as _,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
    web::Data,
};

use crate::{
    access::key_cache::{self, CachedKey, CachedLookup},
    http::{
        auth::caller::{self, CheckedKey},
        server::{
            Api, address,
            rate::{Charge, Payer},
        },
    },
};

/// Number of boards that a request may read and still count once.
const BOARDS_PER_REQUEST: usize = 10;

/// Paths for operators, which have no limit.
const EXEMPT: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The caller that a request has counted for, and the caller's burst.
#[derive(Clone)]
struct ChargedCaller {
    payer: Payer,
    burst: u32,
}

/// Refuses the requests of a caller that has made too many, and adds the rate limit headers.
pub(crate) async fn limit(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let authorization = caller::authorization(request.request()).map(|header| header.map(Cow::into_owned));
    let counted = counted(&request, authorization.as_ref().ok().and_then(Option::as_deref)).await;
    if let Some(counted) = &counted {
        request.extensions_mut().insert(ChargedCaller { payer: counted.payer.clone(), burst: counted.allowance.limit });
    }
    let refusal = counted.as_ref().and_then(Charge::refusal).or(authorization.err());
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
    let charged = request.extensions().get::<ChargedCaller>().cloned();
    let (Some(ChargedCaller { payer, burst }), Some(api)) = (charged, request.app_data::<Data<Api>>()) else {
        return Ok(());
    };
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
async fn counted(request: &ServiceRequest, authorization: Option<&str>) -> Option<Charge> {
    let api = request.app_data::<Data<Api>>()?;
    if EXEMPT.contains(&request.path()) {
        return None;
    }
    let charge = |payer| api.rates.charge(payer, NonZero::<u32>::MIN);
    let charge_key = |known: Arc<CachedKey>| {
        let payer = Payer::Key(known.key.id.clone());
        request.extensions_mut().insert(CheckedKey { known, at: Instant::now() });
        charge(payer)
    };
    let known = key_cache::look_up_cached(&api.instance.keys, authorization);
    if let CachedLookup::Valid(known) = known {
        return charge_key(known);
    }
    let address = address::client_address(&api.settings.trusted_proxies, request.request())?;
    let counted = charge(Payer::Address(address));
    if matches!(known, CachedLookup::NotCached)
        && counted.as_ref().is_some_and(|counted| counted.allowance.wait.is_some())
        && api.rates.may_look_up(address)
        && let Ok(known) = key_cache::find(&api.instance.keys, authorization).await
    {
        return charge_key(known);
    }
    counted
}
