//! Keeps the secrets of webhooks encrypted with the current master key.

use crate::{
    Error, Result,
    access::key,
    model::{
        encryption::{MasterKeys, StoredSecret, is_example},
        webhook,
    },
    store::Administrator,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Secrets {
    pub stored: u64,
    /// Secrets encrypted in this run.
    pub encrypted: u64,
    /// Secrets that remain in clear text.
    pub in_clear: u64,
}

/// Prepares secrets before an instance serves: encrypts those in clear text if there is a master
/// key.
///
/// Returns [`Error::Invalid`] when the master key of a secret is missing, [`Error::Conflict`] when
/// a secret is an example.
pub async fn prepare(admin: &Administrator, keys: Option<&MasterKeys>) -> Result<Secrets> {
    key::refuse_examples(&admin.reader).await?;
    encrypt(admin, keys, |stored, _| !stored.encrypted).await
}

/// Encrypts with the first master key all secrets that are in clear text or encrypted with another
/// key.
///
/// Safe to repeat, and to run concurrently. Returns [`Error::Invalid`] without a master key, or
/// when the key of a secret is missing.
pub async fn encrypt_all(admin: &Administrator, keys: Option<&MasterKeys>) -> Result<Secrets> {
    if keys.is_none() {
        return Err(Error::invalid(
            "master_key",
            "is missing: set CENTILE_MASTER_KEY to the key that encrypts secrets",
        ));
    }
    encrypt(admin, keys, |stored, keys| !(stored.encrypted && keys.is_current(&stored.bytes))).await
}

/// Encrypts the secrets for which `is_wanted` returns true; checks all.
async fn encrypt(
    admin: &Administrator,
    keys: Option<&MasterKeys>,
    is_wanted: fn(&StoredSecret, &MasterKeys) -> bool,
) -> Result<Secrets> {
    let mut encrypted = 0;
    loop {
        let (all, mut in_clear, mut has_changed) = (admin.reader.webhook_secrets().await?, 0, false);
        for (board, stored) in &all {
            let purpose = webhook::purpose(board);
            let secret =
                stored.decrypt(&purpose, keys).map_err(|error| Error::invalid("master_key", error.to_string()))?;
            if is_example(&secret) {
                return Err(Error::other_conflict(format!(
                    "the secret of {purpose} is an example: create another one"
                )));
            }
            match keys {
                Some(keys) if is_wanted(stored, keys) => {
                    if admin.reencrypt_webhook(board, stored, &keys.encrypt(&purpose, &secret)?).await? {
                        encrypted += 1;
                    } else {
                        has_changed = true;
                    }
                }
                _ => in_clear += u64::from(!stored.encrypted),
            }
        }
        // Another process has changed a secret meanwhile, perhaps with another master key: start
        // again.
        if !has_changed {
            return Ok(Secrets { stored: all.len() as u64, encrypted, in_clear });
        }
    }
}
