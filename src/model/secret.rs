//! Secrets: random bytes, and their stored form.

use std::fmt;

use rand::{TryRng as _, rngs::SysRng};

use crate::{
    Error, Result,
    model::encryption::{self, MasterKeys},
};

/// A secret as stored: encrypted, or in clear text if no master key was set.
pub(crate) struct StoredSecret {
    /// The stored bytes.
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
        if self.encrypted { encryption::decrypt(keys, purpose, &self.bytes) } else { Ok(self.bytes.clone()) }
    }
}

/// Returns random bytes from the operating system.
pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| Error::Internal(format!("cannot read random bytes: {error}")))?;
    Ok(bytes)
}
