//! Secrets: random bytes, and their stored form.

use std::fmt;

use rand::{TryRng as _, rngs::SysRng};

use crate::{
    Error, Result,
    model::{
        encryption::{self, MasterKeys},
        signing, webhook,
    },
};

/// A stored secret.
pub(crate) struct SecretRow {
    /// `key` or `webhook`.
    pub(crate) kind: String,
    /// The key's id, or the webhook's board.
    pub(crate) name: String,
    /// Bytes of the secret, encrypted or not.
    pub(crate) secret: Vec<u8>,
    /// Whether the secret is encrypted.
    pub(crate) encrypted: bool,
}

impl fmt::Debug for SecretRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretRow({} {})", self.kind, self.name)
    }
}

impl SecretRow {
    /// Returns the purpose that the secret is encrypted for.
    pub(crate) fn purpose(&self) -> String {
        if self.kind == "key" { signing::purpose(&self.name) } else { webhook::purpose(&self.name) }
    }

    /// Returns the secret's bytes. [`Error::Invalid`] if it is encrypted and none of `keys`
    /// decrypts it.
    pub(crate) fn open(&self, keys: Option<&MasterKeys>) -> Result<Vec<u8>> {
        if !self.encrypted {
            return Ok(self.secret.clone());
        }
        encryption::decrypt(keys, &self.purpose(), &self.secret)
            .map_err(|error| Error::invalid("master_key", error.to_string()))
    }
}

/// Returns random bytes from the operating system.
pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| Error::Internal(format!("cannot read random bytes: {error}")))?;
    Ok(bytes)
}
