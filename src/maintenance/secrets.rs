//! Secrets that the database keeps: sealed by the current master key.

use crate::{
    Error, Result,
    access::key,
    model::{
        seal::{MasterKeys, is_example},
        secret::Kept,
    },
    store::Store,
};

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
pub async fn prepare(store: &Store, keys: Option<&MasterKeys>) -> Result<Secrets> {
    key::refuse_examples(store).await?;
    seal(store, keys, |kept, _| !kept.sealed).await
}

/// Seals with the first master key whatever is in clear or sealed with another one. Again is harmless, and so is doing it in two places.
/// [`Error::Invalid`] when there is no master key, or none for some secret.
pub async fn seal_all(store: &Store, keys: Option<&MasterKeys>) -> Result<Secrets> {
    if keys.is_none() {
        return Err(Error::invalid(
            "master_key",
            "is missing: set CENTILE_MASTER_KEY to what secrets are to be sealed with",
        ));
    }
    seal(store, keys, |kept, keys| !(kept.sealed && keys.is_current(&kept.secret))).await
}

/// Seals those secrets that `is_wanted`; looks at all.
async fn seal(store: &Store, keys: Option<&MasterKeys>, is_wanted: fn(&Kept, &MasterKeys) -> bool) -> Result<Secrets> {
    let mut sealed = 0;
    loop {
        let (all, mut in_clear, mut has_changed) = (store.kept_secrets().await?, 0, false);
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
                    if store.reseal(kept, &keys.seal(&kept.purpose(), &secret)?).await? {
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
