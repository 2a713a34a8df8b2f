//! Webhooks: where the events of a board are sent, and how a receiver can tell that they come from here.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::Uri;
use rand::TryRng as _;
use sha2::Sha256;

use crate::{Error, Result, model::seal::MasterKeys};

/// What the text of a secret begins with.
const SECRET_PREFIX: &str = "whsec_";

/// Random bytes of a secret that is made here.
const SECRET_BYTES: usize = 32;

/// Longest address, in bytes.
const URL_MAX_BYTES: usize = 2_048;

/// The address of a receiver: `https://` or `http://`, without a user or password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl(String);

impl WebhookUrl {
    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebhookUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = |why: &str| Err(Error::invalid("url", why));
        if text.len() > URL_MAX_BYTES {
            return refused("must have at most 2048 bytes");
        }
        // The case of a scheme does not matter to HTTP, but the table takes it in lower case only.
        let scheme = |(scheme, rest): (&str, _)| {
            ["https", "http"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known)).map(|scheme| (scheme, rest))
        };
        let Some((scheme, rest)) = text.split_once("://").and_then(scheme) else {
            return refused("must begin with https:// or http://, as https://rewards.example.com/centile does");
        };
        let url = format!("{scheme}://{rest}");
        let Some(authority) = url.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned()) else {
            return refused("must be an address such as https://rewards.example.com/centile");
        };
        if authority.as_str().contains('@') {
            return refused("must hold no user or password: the signature tells who sends");
        }
        if authority.host().is_empty() {
            return refused("must name a host");
        }
        // What is no port is none to the HTTP client, which then takes the one of the scheme.
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

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What events are signed with: bytes that only Centile and the receiver know. Never logged; as text, `whsec_` and the bytes
/// in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A new one, of 32 bytes from the operating system.
    pub fn random() -> Result<Self> {
        let mut bytes = vec![0; SECRET_BYTES];
        rand::rngs::SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
        Ok(Self(bytes))
    }

    /// Its text, for the receiver and nobody else.
    #[must_use]
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
            // The text is not repeated: it may be somebody's secret all the same.
            _ => Err(Error::invalid("secret", "must be whsec_ and 16 to 64 bytes in base64")),
        }
    }
}

/// A secret as the database has it.
pub(crate) struct StoredSecret {
    /// Its bytes, or what they were sealed to.
    pub(crate) bytes: Vec<u8>,
    /// Whether it is sealed.
    pub(crate) sealed: bool,
}

impl StoredSecret {
    /// As it is to be kept for the webhook of `board`: sealed if there is a master key.
    pub(crate) fn of(secret: &Secret, keys: Option<&MasterKeys>, board: &str) -> Result<Self> {
        Ok(match keys {
            Some(keys) => Self { bytes: keys.seal(&purpose(board), &secret.0)?, sealed: true },
            None => Self { bytes: secret.0.clone(), sealed: false },
        })
    }

    /// The secret itself. [`Error::Internal`] when no master key opens it.
    pub(crate) fn open(&self, keys: Option<&MasterKeys>, board: &str) -> Result<Secret> {
        match (self.sealed, keys) {
            (false, _) => Ok(Secret(self.bytes.clone())),
            (true, Some(keys)) => keys.open(&purpose(board), &self.bytes).map(Secret),
            (true, None) => {
                Err(Error::Internal(format!("the secret of {} is sealed, and there is no master key", purpose(board))))
            }
        }
    }
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredSecret")
    }
}

/// What the secret of a board's webhook is sealed for. Boards keep their names.
pub(crate) fn purpose(board: &str) -> String {
    format!("webhook of board {board}")
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The value of `Centile-Signature`: `t=TIME,v1=HEX`, where HEX is the HMAC-SHA256 (RFC 2104) over `TIME.BODY` and TIME is in
/// seconds since 1970. The time is signed along, so that a receiver can refuse what somebody has kept and sends again.
pub fn signature(secret: &Secret, unix_seconds: i64, body: &str) -> Result<String> {
    // A key of any length will do (RFC 2104, section 2); the error is there for other algorithms.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&secret.0).map_err(|error| Error::Internal(format!("cannot sign: {error}")))?;
    mac.update(format!("{unix_seconds}.").as_bytes());
    mac.update(body.as_bytes());
    let mut text = format!("t={unix_seconds},v1=");
    for byte in mac.finalize().into_bytes() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Where the events of a board go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// When the board got a webhook; only events from then on are sent by themselves.
    pub created_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_http_without_a_password() {
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
    fn a_refused_address_is_told_why() {
        let begin = "url: must begin with https:// or http://, as https://rewards.example.com/centile does";
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
    fn a_secret_is_written_and_read_and_never_shown() -> Result<()> {
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

    /// The expected value is Python's: `hmac.new(bytes(range(32)), b'1700000000.{"event": "period_closed"}', 'sha256')`.
    #[test]
    fn the_signature_is_hmac_sha256_over_time_and_body() -> Result<()> {
        let secret = Secret((0..32).collect());
        assert_eq!(
            signature(&secret, 1_700_000_000, r#"{"event": "period_closed"}"#)?,
            "t=1700000000,v1=f61f6439b5207dcd1ac15a1b99e94972720d2db085904ad111ea3d30da750283"
        );
        Ok(())
    }
}
