//! The HTTP client of the outbox.
//!
//! It does not use reqwest: with TLS, and ring as its only cryptography, every reqwest client
//! panics unless the process has installed a provider before.

use std::{error::Error as _, time::Duration};

use http_body_util::Full;
use hyper::{Request, body::Bytes, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::crypto::ring;

use crate::{Error, Result};

/// Sends requests over HTTP/1.1, with TLS for https URLs. Follows no redirects and uses no proxy.
#[derive(Debug)]
pub(crate) struct Sender(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Sender {
    /// Creates a client that trusts the system's certificate authorities.
    ///
    /// Without a system list, as in minimal containers, it trusts Mozilla's list.
    pub(crate) fn new() -> Result<Self> {
        let connector = match HttpsConnectorBuilder::new().with_provider_and_native_roots(ring::default_provider()) {
            Ok(builder) => builder,
            Err(_) => HttpsConnectorBuilder::new()
                .with_provider_and_webpki_roots(ring::default_provider())
                .map_err(|error| Error::Internal(format!("no TLS: {error}")))?,
        };
        let connector = connector.https_or_http().enable_http1().build();
        // Messages are rare, and the next one may go to another process, so no connection is kept.
        Ok(Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector)))
    }

    /// Posts JSON to `url` with additional headers; returns the response status, or why there was
    /// no response within `timeout`.
    ///
    /// Does not read the response body.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: [(&str, &str); 2],
        json: String,
        timeout: Duration,
    ) -> Result<u16, String> {
        let mut request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("centile/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request =
            request.body(Full::from(json)).map_err(|error| format!("cannot send a request to this URL: {error}"))?;
        match tokio::time::timeout(timeout, self.0.request(request)).await {
            Ok(Ok(response)) => Ok(response.status().as_u16()),
            Ok(Err(error)) => Err(with_causes(&error)),
            Err(_) => Err(format!("no answer within {} s", timeout.as_secs_f32())),
        }
    }
}

/// Returns an error and its causes in one line.
fn with_causes(error: &hyper_util::client::legacy::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
