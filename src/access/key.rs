//! Creates, lists and revokes API keys.

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};

use crate::{
    Code, Error, Result,
    access::ApiKeys,
    model::{
        act::Actor,
        idempotency::IdempotencyKey,
        key::{Key, NewKey, hex},
        secret,
        user::check_text,
    },
    store::{Administrator, Reader, key::KeyRequest},
};

/// Hexadecimal digits of a key's id.
pub(crate) const ID_DIGITS: usize = 16;

pub(crate) const SECRET_BYTES: usize = 32;

/// Creates a key, and returns its text with it. The text is not stored.
///
/// A repeated call with the same `idempotency_key` and actor returns the same key and text, for
/// seven days. Returns [`Error::Conflict`] when two valid keys already have this name, or when
/// another key was created with `idempotency_key`.
pub async fn create(
    admin: &Administrator,
    new: NewKey,
    idempotency_key: Option<&IdempotencyKey>,
    by: &Actor,
) -> Result<(Key, String)> {
    check_text("name", &new.name, 128)?;
    if let Some(repeatable) = idempotency_key
        && let Some((key, salt)) = admin.key_of_request(&repeatable.sha256(by)).await?
    {
        return existing(key, &new, &repeatable.derive(&salt));
    }
    let id = hex(&secret::random::<{ ID_DIGITS / 2 }>()?);
    let salt = secret::random::<SECRET_BYTES>()?;
    let secret = hex(&idempotency_key.map_or(salt, |repeatable| repeatable.derive(&salt)));
    let request = idempotency_key.map(|repeatable| KeyRequest { sha256: repeatable.sha256(by), salt });
    let digest = Sha256::digest(secret.as_bytes());
    let created_at = admin.create_key(&id, &new, &digest, request.as_ref(), by).await?;
    let text = format!("ctl_{id}_{secret}");
    let NewKey { name, role, boards, expires_at } = new;
    Ok((Key { id, name, role, boards, created_at, expires_at, revoked_at: None, last_used_at: None }, text))
}

/// Returns the key that an earlier request has created, with the secret derived from its salt.
fn existing(key: Key, new: &NewKey, secret: &[u8]) -> Result<(Key, String)> {
    let micros = |at: Option<DateTime<Utc>>| at.map(|at| at.timestamp_micros());
    let is_same = (&key.name, key.role, &key.boards, micros(key.expires_at))
        == (&new.name, new.role, &new.boards, micros(new.expires_at));
    if !is_same {
        let message = format!("another key, {}, was created with this Idempotency-Key", key.id);
        return Err(Error::conflict(Code::IdempotencyKeyReused, message));
    }
    let text = format!("ctl_{}_{}", key.id, hex(secret));
    Ok((key, text))
}

/// Returns [`Error::Conflict`] if the secret of a valid key is a published example, from
/// documentation or a test.
///
/// Only digests are stored, so only known examples can be found.
pub(crate) async fn refuse_examples(reader: &Reader) -> Result<()> {
    let digests: Vec<Vec<u8>> = examples().map(|secret| Sha256::digest(secret).to_vec()).collect();
    match reader.keys_of_digests(&digests).await?.first() {
        None => Ok(()),
        Some(id) => Err(Error::other_conflict(format!(
            "the secret of key {id} is an example: revoke it and create another key"
        ))),
    }
}

/// Returns guessable secrets: one repeated digit, counting digits, and the example of
/// `centile.create_key`.
fn examples() -> impl Iterator<Item = String> {
    let repeated = "0123456789abcdef".chars().map(|digit| digit.to_string().repeat(SECRET_BYTES * 2));
    let counted = ["0123456789abcdef", "deadbeef", "1234567890"]
        .map(|digits| digits.chars().cycle().take(SECRET_BYTES * 2).collect());
    let bytes = hex(&(0..).take(SECRET_BYTES).collect::<Vec<u8>>());
    repeated.chain(counted).chain([bytes, "64 random hexadecimal digits".to_owned()])
}

/// Revokes a key at once on this instance; others stop accepting it within 5 s.
///
/// Returns [`Error::NotFound`] for an unknown id.
pub async fn revoke(admin: &Administrator, keys: &ApiKeys, id: &str, by: &Actor) -> Result<()> {
    let revoked = admin.revoke_key(id, by).await;
    // The key may be revoked even if the call failed.
    keys.cache.forget(id);
    revoked
}
