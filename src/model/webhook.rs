//! Webhooks: receivers of a board's messages, and the signatures of deliveries.

use std::{fmt, str::FromStr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::Uri;
use sha2::Sha256;

use crate::{
    Error, Result,
    model::{
        encryption::{MasterKeys, StoredSecret},
        key::hex,
        secret,
        text::checked_text,
    },
};

/// Prefix of a secret's text.
const SECRET_PREFIX: &str = "whsec_";

/// Bytes of a generated secret.
const SECRET_BYTES: usize = 32;

const URL_MAX_BYTES: usize = 2_048;

/// The URL of a receiver: `https://` or `http://`, without user or password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl(String);

checked_text!(WebhookUrl);

impl FromStr for WebhookUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = |why: &str| Err(Error::invalid("url", why));
        if text.len() > URL_MAX_BYTES {
            return refused("must have at most 2048 bytes");
        }
        // HTTP ignores the case of a scheme, but the table accepts only lower case.
        let scheme = |(scheme, rest): (&str, _)| {
            ["https", "http"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known)).map(|scheme| (scheme, rest))
        };
        let Some((scheme, rest)) = text.split_once("://").and_then(scheme) else {
            return refused("must begin with https:// or http://, as in https://rewards.example.com/centile");
        };
        let url = format!("{scheme}://{rest}");
        let Some(authority) = url.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned()) else {
            return refused("must be a URL such as https://rewards.example.com/centile");
        };
        if authority.as_str().contains('@') {
            return refused("must not contain a user or password; receivers verify the signature instead");
        }
        if authority.host().is_empty() {
            return refused("must name a host");
        }
        // The HTTP client ignores an invalid port and uses the scheme's default.
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let is_port = |digits: &str| {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok_and(|port| port > 0)
        };
        if !(port.is_empty() || port.strip_prefix(':').is_some_and(is_port)) {
            return refused("must have a port from 1 to 65535, or none");
        }
        Ok(Self(url))
    }
}

/// Secret that signs a board's messages, shared by Centile and the receiver. Its text is `whsec_`
/// and base64. Never log it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates a secret of 32 bytes from the operating system's random numbers.
    pub fn random() -> Result<Self> {
        secret::random::<SECRET_BYTES>().map(|bytes| Self(bytes.to_vec()))
    }

    /// Returns the secret's text, for the receiver only.
    pub fn text(&self) -> String {
        format!("{SECRET_PREFIX}{}", BASE64_STANDARD.encode(&self.0))
    }
}

impl FromStr for Secret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = text.strip_prefix(SECRET_PREFIX).and_then(|text| BASE64_STANDARD.decode(text).ok());
        match bytes {
            Some(bytes) if (16..=64).contains(&bytes.len()) => Ok(Self(bytes)),
            // Do not repeat the text, which may still be a secret.
            _ => Err(Error::invalid("secret", "must be whsec_ and 16 to 64 bytes in base64")),
        }
    }
}

impl Secret {
    /// Prepares the secret for storage with the webhook of `board`.
    pub(crate) fn encrypt(&self, keys: Option<&MasterKeys>, board: &str) -> Result<StoredSecret> {
        StoredSecret::new(&self.0, &purpose(board), keys)
    }

    /// Returns a stored secret itself. [`Error::Internal`] if no master key decrypts it.
    pub(crate) fn decrypt(stored: &StoredSecret, keys: Option<&MasterKeys>, board: &str) -> Result<Self> {
        stored.decrypt(&purpose(board), keys).map(Self)
    }
}

/// Returns the purpose that a board's webhook secret is encrypted for. A board's name never
/// changes.
pub(crate) fn purpose(board: &str) -> String {
    format!("webhook of board {board}")
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns the value of `Centile-Signature`: `t=TIME,v1=HEX`.
///
/// HEX is the HMAC-SHA256 (RFC 2104) of `TIME.BODY`. TIME is in seconds since 1970. It is part of
/// the signed text, so that a receiver can refuse a replayed delivery.
pub fn signature(secret: &Secret, unix_seconds: i64, body: &str) -> Result<String> {
    // HMAC accepts keys of any length (RFC 2104, section 2); other algorithms may fail here.
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0)
        .map_err(|error| Error::Internal(format!("a message cannot be signed: {error}")))?;
    mac.update(format!("{unix_seconds}.").as_bytes());
    mac.update(body.as_bytes());
    Ok(format!("t={unix_seconds},v1={}", hex(&mac.finalize().into_bytes())))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub url: String,
    /// Time at which the board got a webhook. Only later messages are sent automatically.
    pub created_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_http_without_a_password() {
        for text in ["https://rewards.example.com/hook?a=b", "http://127.0.0.1:9", "https://[::1]:8/x", "http://h"] {
            assert_eq!(text.parse::<WebhookUrl>().ok().map(|url| url.0), Some(text.to_owned()));
        }
        let long = format!("https://h/{}", "x".repeat(URL_MAX_BYTES));
        for text in [
            "",
            "/hook",
            "example.com",
            "ftp://h/",
            "HTTPS://",
            "https://",
            "https:///x",
            "http://:80/",
            "https://u:p@h/",
            "https://h/a b",
            &long,
        ] {
            assert!(text.parse::<WebhookUrl>().is_err(), "{text}");
        }
        assert_eq!("HtTPs://H/X".parse::<WebhookUrl>().ok().map(|url| url.0).as_deref(), Some("https://H/X"));
    }

    #[test]
    fn the_error_for_a_refused_url_gives_the_reason() {
        let begin = "url: must begin with https:// or http://, as in https://rewards.example.com/centile";
        let port = "url: must have a port from 1 to 65535, or none";
        for (text, why) in [
            ("rewards.example.com/hook", begin),
            ("localhost:8080", begin),
            ("file:///etc/passwd", begin),
            ("http:/h/", begin),
            ("http://127.0.0.1:99999/ok", port),
            ("http://127.0.0.1:65536", port),
            ("http://127.0.0.1:0/ok", port),
            ("https://[::1]:0/ok", port),
            ("http://h:/ok", port),
            ("http://h:x/ok", port),
            ("http://h:+1/ok", port),
        ] {
            let refused = text.parse::<WebhookUrl>().err().map(|error| error.to_string());
            assert_eq!(refused.as_deref(), Some(why), "{text}");
        }
        for text in ["http://h:1/", "http://h:65535/", "https://[::1]:65535"] {
            assert!(text.parse::<WebhookUrl>().is_ok(), "{text}");
        }
    }

    #[test]
    fn a_secret_survives_formatting_and_parsing_and_is_never_shown() -> Result<()> {
        let secret = Secret::random()?;
        assert_ne!(secret, Secret::random()?);
        assert_eq!(secret.text().parse::<Secret>()?, secret);
        assert_eq!(format!("{secret:?}"), "Secret");
        for text in [
            "",
            "whsec_",
            "whsec_AAAA",
            "AAAAAAAAAAAAAAAAAAAAAA==",
            "whsec_AAAAAAAAAAAAAAAAAAAA*A==",
            &format!("whsec_{}", "A".repeat(88)),
        ] {
            let refused = text.parse::<Secret>().err().map(|error| error.to_string());
            assert_eq!(refused.as_deref(), Some("secret: must be whsec_ and 16 to 64 bytes in base64"), "{text}");
        }
        Ok(())
    }

    /// The expected value is from Python: `hmac.new(bytes(range(32)), b'1700000000.{"type":
    /// "period_closed"}', 'sha256')`.
    #[test]
    fn the_signature_is_hmac_sha256_over_time_and_body() -> Result<()> {
        let secret = Secret((0..32).collect());
        assert_eq!(
            signature(&secret, 1_700_000_000, r#"{"type": "period_closed"}"#)?,
            "t=1700000000,v1=d1efbf0ab8e3d7e46b56145e4576a7cc2d91b446d05b36bf55f2d1e558838464"
        );
        Ok(())
    }
}
