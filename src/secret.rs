//! Secrets that are kept to be read again: what keys sign their requests with, and what the events of webhooks are signed with. In the
//! database they are sealed with a master key (`seal.rs`); those of webhooks stay in clear until there is one.

use std::fmt;

use crate::{
    Error, Result, key,
    seal::{MasterKeys, is_example},
    service::Service,
    signing, webhook,
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
    fn purpose(&self) -> String {
        if self.kind == "key" { signing::purpose(&self.name) } else { webhook::purpose(&self.name) }
    }

    /// Its bytes. [`Error::Invalid`] when it is sealed and none of `keys` opens it.
    fn open(&self, keys: Option<&MasterKeys>) -> Result<Vec<u8>> {
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

/// How the secrets are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Secrets {
    /// All of them.
    pub kept: u64,
    /// How many of them were sealed just now.
    pub sealed: u64,
    /// How many of them are in clear.
    pub in_clear: u64,
}

/// What an instance does before it serves: refuses examples and secrets that it could not open, and seals what is in clear if there is a
/// master key. [`Error::Invalid`] when a master key is missing, [`Error::Conflict`] when a secret is an example.
pub async fn prepare(service: &Service) -> Result<Secrets> {
    key::refuse_examples(service).await?;
    seal(service, |kept, _| !kept.sealed).await
}

/// Seals with the first master key whatever is in clear or sealed with another one. Again is harmless, and so is doing it in two places.
/// [`Error::Invalid`] when there is no master key, or none for some secret.
pub async fn seal_all(service: &Service) -> Result<Secrets> {
    if service.master_keys.is_none() {
        return Err(Error::invalid(
            "master_key",
            "is missing: set CENTILE_MASTER_KEY to what secrets are to be sealed with",
        ));
    }
    seal(service, |kept, keys| !(kept.sealed && keys.is_current(&kept.secret))).await
}

/// Seals those secrets that `is_wanted`; looks at all.
async fn seal(service: &Service, is_wanted: fn(&Kept, &MasterKeys) -> bool) -> Result<Secrets> {
    let keys = service.master_keys.as_deref();
    let mut sealed = 0;
    loop {
        let (all, mut in_clear, mut has_changed) = (service.store.kept_secrets().await?, 0, false);
        for kept in &all {
            let secret = kept.open(keys)?;
            if is_example(&secret) {
                return Err(Error::Conflict(format!(
                    "the secret of {} is an example: make another one",
                    kept.purpose()
                )));
            }
            match keys {
                Some(keys) if is_wanted(kept, keys) => {
                    if service.store.reseal(kept, &keys.seal(&kept.purpose(), &secret)?).await? {
                        sealed += 1;
                    } else {
                        has_changed = true;
                    }
                }
                _ => in_clear += u64::from(!kept.sealed),
            }
        }
        // Somebody else has set or sealed one meanwhile, perhaps with another master key: all of them once more.
        if !has_changed {
            return Ok(Secrets { kept: all.len() as u64, sealed, in_clear });
        }
    }
}
