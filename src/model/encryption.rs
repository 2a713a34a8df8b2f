//! Encryption of secrets in the database.
//!
//! The stored bytes are useless without the master key, which the database never receives. They
//! begin with a format byte (1), a key name of four bytes and a random nonce of 12 bytes. The
//! ciphertext follows, with its tag, under AES-256-GCM (NIST SP 800-38D). The key name is the start
//! of the master key's SHA-256. The purpose of the secret is authenticated data, so that no secret
//! can replace another.

use std::{fmt, str::FromStr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::{Digest as _, Sha256};

use crate::{Error, Result, model::secret};

const FORMAT: u8 = 1;

const KEY_BYTES: usize = 32;

/// Bytes of a master key's name.
const NAME_BYTES: usize = 4;

/// The master keys of an installation. The first one encrypts and decrypts; the others are older
/// and only decrypt.
pub struct MasterKeys(Vec<MasterKey>);

struct MasterKey {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

impl FromStr for MasterKeys {
    type Err = Error;

    /// Parses keys of 32 bytes in base64, separated by commas or white space.
    fn from_str(text: &str) -> Result<Self> {
        // Do not repeat the text, which may still be a secret.
        let refused = || {
            Error::invalid("master_key", "must be 32 random bytes in base64, such as `openssl rand -base64 32` prints")
        };
        let texts = text.split(|character: char| character == ',' || character.is_whitespace());
        let keys: Vec<MasterKey> = texts
            .filter(|text| !text.is_empty())
            .map(|text| {
                let bytes =
                    BASE64_STANDARD.decode(text).ok().filter(|bytes| bytes.len() == KEY_BYTES).ok_or_else(refused)?;
                // Refuse words too. Fewer than one in 10^13 random keys consist of printable
                // characters only.
                if is_example(&bytes) || bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
                    return Err(Error::invalid(
                        "master_key",
                        "is an example; create one with `openssl rand -base64 32`",
                    ));
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
    pub(crate) fn encrypt(&self, purpose: &str, secret: &[u8]) -> Result<Vec<u8>> {
        let failed = |_| Error::Internal("a secret could not be encrypted".to_owned());
        let MasterKey { name, key } = &self.0[0];
        let nonce = secret::random::<NONCE_LEN>()?;
        let mut text = secret.to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose.as_bytes()), &mut text)
            .map_err(failed)?;
        Ok([&[FORMAT][..], name, &nonce, &text].concat())
    }

    /// Decrypts a secret that was encrypted for `purpose`.
    ///
    /// [`Error::Internal`] if it is damaged, was encrypted for another purpose, or needs a master
    /// key that is not set.
    pub(crate) fn decrypt(&self, purpose: &str, encrypted: &[u8]) -> Result<Vec<u8>> {
        let broken = || {
            Error::Internal(format!(
                "the secret of {purpose} cannot be decrypted: it is damaged or belongs to something else"
            ))
        };
        let (head, rest) = encrypted.split_at_checked(1 + NAME_BYTES).ok_or_else(broken)?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN).ok_or_else(broken)?;
        if head[0] != FORMAT {
            return Err(broken());
        }
        let key = self.0.iter().find(|key| key.name == head[1..]).ok_or_else(|| {
            Error::Internal(format!(
                "the secret of {purpose} is encrypted with a master key that is not among those given"
            ))
        })?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
        let mut text = text.to_vec();
        let secret = key.key.open_in_place(nonce, Aad::from(purpose.as_bytes()), &mut text).map_err(|_| broken())?;
        Ok(secret.to_vec())
    }

    /// Returns whether `encrypted` is encrypted with the first master key.
    pub(crate) fn is_current(&self, encrypted: &[u8]) -> bool {
        encrypted.first() == Some(&FORMAT) && encrypted.get(1..=NAME_BYTES) == Some(&self.0[0].name)
    }
}

/// A secret as stored: encrypted, or in clear text if no master key was set.
pub(crate) struct StoredSecret {
    pub(crate) bytes: Vec<u8>,
    pub(crate) encrypted: bool,
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredSecret")
    }
}

impl StoredSecret {
    /// Encrypts a secret for `purpose` if a master key is set.
    pub(crate) fn new(secret: &[u8], purpose: &str, keys: Option<&MasterKeys>) -> Result<Self> {
        Ok(match keys {
            Some(keys) => Self { bytes: keys.encrypt(purpose, secret)?, encrypted: true },
            None => Self { bytes: secret.to_vec(), encrypted: false },
        })
    }

    /// Returns the secret itself. [`Error::Internal`] if it is encrypted and none of `keys`
    /// decrypts it.
    pub(crate) fn decrypt(&self, purpose: &str, keys: Option<&MasterKeys>) -> Result<Vec<u8>> {
        match keys {
            _ if !self.encrypted => Ok(self.bytes.clone()),
            Some(keys) => keys.decrypt(purpose, &self.bytes),
            None => Err(Error::Internal(format!("the secret of {purpose} is encrypted, but no master key is set"))),
        }
    }
}

/// Returns whether a secret looks like an example from documentation: few different bytes, or bytes
/// at a constant distance. Random secrets practically never look like that.
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

    /// A master key derived from a name.
    fn master_key(name: &str) -> String {
        BASE64_STANDARD.encode(Sha256::digest(name))
    }

    #[test]
    fn a_secret_is_decrypted_only_for_its_purpose() -> Result<()> {
        let keys: MasterKeys = master_key("new").parse()?;
        let encrypted = keys.encrypt("webhook of main", b"sesame")?;
        assert_ne!(encrypted, keys.encrypt("webhook of main", b"sesame")?, "a new nonce");
        assert!(!encrypted.windows(6).any(|part| part == b"sesame"));
        assert_eq!(keys.decrypt("webhook of main", &encrypted)?, b"sesame");
        assert!(keys.decrypt("webhook of other", &encrypted).is_err());
        for place in 0..encrypted.len() {
            let mut damaged = encrypted.clone();
            damaged[place] ^= 1;
            assert!(keys.decrypt("webhook of main", &damaged).is_err(), "byte {place}");
            assert!(keys.decrypt("webhook of main", &encrypted[..place]).is_err(), "{place} bytes");
        }
        Ok(())
    }

    #[test]
    fn an_older_key_decrypts_and_does_not_encrypt() -> Result<()> {
        let (old, new) = (master_key("old"), master_key("new"));
        let encrypted = old.parse::<MasterKeys>()?.encrypt("x", b"sesame")?;
        let both: MasterKeys = format!("{new}, {old}\n").parse()?;
        assert_eq!(both.decrypt("x", &encrypted)?, b"sesame");
        assert!(!both.is_current(&encrypted) && both.is_current(&both.encrypt("x", b"sesame")?));
        assert!(new.parse::<MasterKeys>()?.decrypt("x", &encrypted).is_err());
        Ok(())
    }

    #[test]
    fn invalid_keys_and_examples_are_refused_and_not_repeated() {
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
