//! Idempotency keys: with one, a request may be sent again without a second effect.

use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{Error, Result, model::act::Actor};

/// Name of the header, also in errors (draft-ietf-httpapi-idempotency-key-header).
pub const HEADER: &str = "Idempotency-Key";

/// Length of an idempotency key, in bytes. Shorter ones could be guessed.
const LENGTH: std::ops::RangeInclusive<usize> = 16..=128;

/// A random text that a client chooses for one request, such as a UUID.
///
/// The secret of an API key is derived from it, so treat it as a secret. The name of the field in
/// errors is that of the header.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digest under which a request of `actor` is stored.
    pub(crate) fn sha256(&self, actor: &Actor) -> [u8; 32] {
        Sha256::new().chain_update(actor.as_str()).chain_update([0]).chain_update(&self.0).finalize().into()
    }

    /// Returns the HMAC-SHA256 of the idempotency key under `salt`.
    pub(crate) fn derive(&self, salt: &[u8]) -> [u8; 32] {
        // HMAC accepts a key of any length.
        let mac = Hmac::<Sha256>::new_from_slice(salt).map(|mac| mac.chain_update(&self.0));
        mac.map_or([0; 32], |mac| mac.finalize().into_bytes().into())
    }
}

impl FromStr for IdempotencyKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            let (min, max) = (LENGTH.start(), LENGTH.end());
            Err(Error::invalid(HEADER, format!("must have {min} to {max} visible ASCII characters, such as a UUID")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_has_16_to_128_visible_ascii_characters() {
        let long = "x".repeat(128);
        for good in ["0123456789abcdef", "5f0c1b7e-2f0e-4a55-9a76-0c4c6b1e3f1d", &long] {
            assert!(good.parse::<IdempotencyKey>().is_ok(), "{good}");
        }
        for bad in ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcdéf", &(long.clone() + "x")] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_derived_secret_depends_on_salt_and_key() -> Result<()> {
        let (one, two): (IdempotencyKey, IdempotencyKey) = ("0123456789abcdef".parse()?, "0123456789abcdeg".parse()?);
        assert_eq!(one.derive(&[1; 32]), one.derive(&[1; 32]));
        assert_ne!(one.derive(&[1; 32]), one.derive(&[2; 32]));
        assert_ne!(one.derive(&[1; 32]), two.derive(&[1; 32]));
        Ok(())
    }
}
