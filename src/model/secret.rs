//! Secrets that the database keeps.

use std::fmt;

use crate::{
    Error, Result,
    model::{seal::MasterKeys, signing, webhook},
};

/// A secret as it is kept.
pub(crate) struct Kept {
    /// `key` or `webhook`.
    pub(crate) kind: String,
    /// The key's id, or the webhook's board.
    pub(crate) name: String,
    /// Its bytes, or what they were sealed to.
    pub(crate) secret: Vec<u8>,
    /// Whether it is sealed.
    pub(crate) sealed: bool,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} {})", self.kind, self.name)
    }
}

impl Kept {
    /// What it is sealed for.
    pub(crate) fn purpose(&self) -> String {
        if self.kind == "key" { signing::purpose(&self.name) } else { webhook::purpose(&self.name) }
    }

    /// Its bytes. [`Error::Invalid`] when it is sealed and none of `keys` opens it.
    pub(crate) fn open(&self, keys: Option<&MasterKeys>) -> Result<Vec<u8>> {
        let purpose = self.purpose();
        match keys {
            _ if !self.sealed => Ok(self.secret.clone()),
            Some(keys) => {
                keys.open(&purpose, &self.secret).map_err(|error| Error::invalid("master_key", error.to_string()))
            }
            None => {
                Err(Error::invalid("master_key", format!("is missing: the secret of {purpose} is sealed with one")))
            }
        }
    }
}
