//! Who calls: the API key of a request.

use std::sync::Arc;

use actix_web::{HttpRequest, http::header};

use super::Api;
use crate::{
    Error, Result,
    key::{self, Key},
};

/// The key that `request` was sent with. [`Error::Unauthorized`] when there is none, or one that is not valid.
pub(super) async fn authenticated(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let authorization = request
        .headers()
        .get(header::AUTHORIZATION)
        .map(|value| value.to_str().map_err(|_| Error::Unauthorized("the Authorization header is not ASCII".into())))
        .transpose()?;
    key::authenticate(&api.service, authorization).await
}

/// The admin key that `request` was sent with. [`Error::Forbidden`] when it is another kind of key.
pub(super) async fn admin(api: &Api, request: &HttpRequest) -> Result<Arc<Key>> {
    let key = authenticated(api, request).await?;
    key.may_administer()?;
    Ok(key)
}
