//! Secrets at rest: what the database keeps of them is of no use without the master key, which it never sees.
//!
//! A sealed secret is a byte for the form (1), four bytes that tell which master key it takes (the beginning of its SHA-256), a
//! random nonce of 12 bytes, and the secret under AES-256-GCM (NIST SP 800-38D) with its tag. What the secret is for is
//! authenticated along, so that none can be put in the place of another.

use std::{fmt, str::FromStr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rand::TryRng as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest as _, Sha256};

use crate::{Error, Result};

/// The only form there is.
const FORM: u8 = 1;

/// Bytes of a master key.
const KEY_BYTES: usize = 32;

/// Bytes of its name.
const NAME_BYTES: usize = 4;

/// The master keys of an installation: the first one seals, the others, older ones, only open.
pub struct MasterKeys(Vec<MasterKey>);

struct MasterKey {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

impl FromStr for MasterKeys {
    type Err = Error;

    /// Reads keys of 32 bytes in base64, with commas or white space between.
    fn from_str(text: &str) -> Result<Self> {
        // Nothing of the text is repeated: it may be somebody's secret all the same.
        let refused = || {
            Error::invalid("master_key", "must be 32 random bytes in base64, as `openssl rand -base64 32` makes them")
        };
        let texts = text.split(|character: char| character == ',' || character.is_whitespace());
        let keys: Vec<MasterKey> = texts
            .filter(|text| !text.is_empty())
            .map(|text| {
                let bytes =
                    BASE64_STANDARD.decode(text).ok().filter(|bytes| bytes.len() == KEY_BYTES).ok_or_else(refused)?;
                // Words are no key either: of random bytes not one in 10^13 would be all letters, digits and signs.
                if is_example(&bytes) || bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
                    return Err(Error::invalid("master_key", "is an example: make one with `openssl rand -base64 32`"));
                }
                let digest = Sha256::digest(&bytes);
                let mut name = [0; NAME_BYTES];
                name.copy_from_slice(&digest[..NAME_BYTES]);
                let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| refused())?;
                Ok(MasterKey { name, key: LessSafeKey::new(key) })
            })
            .collect::<Result<_>>()?;
        if keys.is_empty() { Err(refused()) } else { Ok(Self(keys)) }
    }
}

impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKeys")
    }
}

impl MasterKeys {
    /// Seals `secret`, which is for `purpose`.
    pub(crate) fn seal(&self, purpose: &str, secret: &[u8]) -> Result<Vec<u8>> {
        let failed = |_| Error::Internal("a secret could not be sealed".to_owned());
        let MasterKey { name, key } = &self.0[0];
        let mut nonce = [0; NONCE_LEN];
        rand::rngs::SysRng
            .try_fill_bytes(&mut nonce)
            .map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
        let mut text = secret.to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose.as_bytes()), &mut text)
            .map_err(failed)?;
        Ok([&[FORM][..], name, &nonce, &text].concat())
    }

    /// Opens what was sealed for `purpose`. [`Error::Internal`] when it was not, or under another master key, which the log names.
    pub(crate) fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let broken =
            || Error::Internal(format!("the secret of {purpose} cannot be opened: it is damaged, or another's"));
        let (head, rest) = sealed.split_at_checked(1 + NAME_BYTES).ok_or_else(broken)?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN).ok_or_else(broken)?;
        if head[0] != FORM {
            return Err(broken());
        }
        let key = self.0.iter().find(|key| key.name == head[1..]).ok_or_else(|| {
            Error::Internal(format!(
                "the secret of {purpose} is sealed with a master key that is not among those given"
            ))
        })?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
        let mut text = text.to_vec();
        let secret = key.key.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut text).map_err(|_| broken())?;
        Ok(secret.to_vec())
    }

    /// Whether `sealed` is sealed with the first of these.
    pub(crate) fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.first() == Some(&FORM) && sealed.get(1..=NAME_BYTES) == Some(&self.0[0].name)
    }
}

/// Whether a secret is one of those that people write down to show what a secret looks like: few different bytes, or each so much above the
/// one before. Random ones are met like that by nobody.
pub(crate) fn is_example(secret: &[u8]) -> bool {
    let mut different = secret.to_vec();
    different.sort_unstable();
    different.dedup();
    let mut steps = secret.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    let step = steps.next();
    different.len() * 2 < secret.len() || steps.all(|other| Some(other) == step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A master key that is in no file.
    fn master_key(name: &str) -> String {
        BASE64_STANDARD.encode(Sha256::digest(name))
    }

    #[test]
    fn what_is_sealed_can_be_opened_for_its_purpose_only() -> Result<()> {
        let keys: MasterKeys = master_key("new").parse()?;
        let sealed = keys.seal("webhook of main", b"sesame")?;
        assert_ne!(sealed, keys.seal("webhook of main", b"sesame")?, "a nonce of its own");
        assert!(!sealed.windows(6).any(|part| part == b"sesame"));
        assert_eq!(keys.open("webhook of main", &sealed)?, b"sesame");
        assert!(keys.open("webhook of other", &sealed).is_err());
        for place in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[place] ^= 1;
            assert!(keys.open("webhook of main", &damaged).is_err(), "byte {place}");
            assert!(keys.open("webhook of main", &sealed[..place]).is_err(), "{place} bytes");
        }
        Ok(())
    }

    #[test]
    fn an_older_key_opens_and_does_not_seal() -> Result<()> {
        let (old, new) = (master_key("old"), master_key("new"));
        let sealed = old.parse::<MasterKeys>()?.seal("x", b"sesame")?;
        let both: MasterKeys = format!("{new}, {old}\n").parse()?;
        assert_eq!(both.open("x", &sealed)?, b"sesame");
        assert!(!both.is_current(&sealed) && both.is_current(&both.seal("x", b"sesame")?));
        assert!(new.parse::<MasterKeys>()?.open("x", &sealed).is_err());
        Ok(())
    }

    #[test]
    fn what_is_no_key_or_an_example_is_refused_and_not_repeated() {
        let short = BASE64_STANDARD.encode([7; 31]);
        let zeroes = BASE64_STANDARD.encode([0; 32]);
        let counted = BASE64_STANDARD.encode((0..32).collect::<Vec<u8>>());
        let words = BASE64_STANDARD.encode("the quick brown fox jumps over 1");
        let second = format!("{},sesame", master_key("new"));
        for text in ["", " ", "changeme", &short, &zeroes, &counted, &words, &second] {
            let refused = text.parse::<MasterKeys>().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.starts_with("master_key: "), "{text}: {refused}");
            assert!(!refused.contains("sesame") && (text.trim().is_empty() || !refused.contains(text)), "{refused}");
        }
    }
}
