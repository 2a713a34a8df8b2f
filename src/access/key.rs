//! API keys: making, listing and revoking them.

use rand::TryRng as _;
use sha2::{Digest as _, Sha256};

use crate::{
    Error, Result,
    access::ApiKeys,
    model::{
        act::Actor,
        key::{Key, NewKey, hex},
        signing::SigningSecret,
        user::check_text,
    },
    store::Store,
};

/// Hexadecimal digits of a key's id.
pub(crate) const ID_DIGITS: usize = 16;

/// Random bytes of a key's secret.
pub(crate) const SECRET_BYTES: usize = 32;

/// Secrets of a new key, shown to its holder once.
pub struct NewSecrets {
    /// The key's text; stored nowhere.
    pub key: String,
    /// Signs the key's requests, if they must be signed.
    pub signing_secret: Option<SigningSecret>,
}

/// Makes a key. [`Error::Conflict`] when two of the same name work already; [`Error::Invalid`] when it is to sign and there is no master
/// key to keep its secret under.
pub async fn create(keys: &ApiKeys, new: NewKey, by: &Actor) -> Result<(Key, NewSecrets)> {
    check_text("name", &new.name, 128)?;
    let id = random_hex(ID_DIGITS / 2)?;
    let secret = random_hex(SECRET_BYTES)?;
    let (signing_secret, sealed) = if new.signed {
        let master_keys = keys.master_keys.as_deref().ok_or_else(|| {
            Error::invalid("signed", "needs a master key to keep the signing secret under: set CENTILE_MASTER_KEY")
        })?;
        let signing_secret = SigningSecret::random()?;
        let sealed = signing_secret.seal(master_keys, &id)?;
        (Some(signing_secret), Some(sealed))
    } else {
        (None, None)
    };
    let digest = Sha256::digest(secret.as_bytes());
    let created_at = keys.store.create_key(&id, &new, &digest, sealed.as_deref(), by).await?;
    let secrets = NewSecrets { key: format!("ctl_{id}_{secret}"), signing_secret };
    let NewKey { name, role, boards, signed, expires_at } = new;
    let key = Key { id, name, role, boards, signed, created_at, expires_at, revoked_at: None, last_used_at: None };
    Ok((key, secrets))
}

/// Random bytes from the operating system, as hexadecimal digits.
fn random_hex(bytes: usize) -> Result<String> {
    let mut random = vec![0; bytes];
    rand::rngs::SysRng
        .try_fill_bytes(&mut random)
        .map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
    Ok(hex(&random))
}

/// Refuses to go on while a key works whose secret is one of those that are written down as examples, in documentation or in a test:
/// [`Error::Conflict`]. Only digests are known, so that only these can be told.
pub(crate) async fn refuse_examples(store: &Store) -> Result<()> {
    let digests: Vec<Vec<u8>> = examples().map(|secret| Sha256::digest(secret).to_vec()).collect();
    match store.keys_of_digests(&digests).await?.first() {
        None => Ok(()),
        Some(id) => {
            Err(Error::Conflict(format!("the secret of key {id} is an example: revoke it, and make another key")))
        }
    }
}

/// Secrets that nobody is to use: one digit again and again, digits in their order, what `centile.create_key` shows as an example.
fn examples() -> impl Iterator<Item = String> {
    let repeated = "0123456789abcdef".chars().map(|digit| digit.to_string().repeat(SECRET_BYTES * 2));
    let counted = ["0123456789abcdef", "deadbeef", "1234567890"]
        .map(|digits| digits.chars().cycle().take(SECRET_BYTES * 2).collect());
    let bytes = hex(&(0..).take(SECRET_BYTES).collect::<Vec<u8>>());
    repeated.chain(counted).chain([bytes, "64 random hexadecimal digits".to_owned()])
}

/// All keys, newest first.
pub async fn list(store: &Store) -> Result<Vec<Key>> {
    store.keys().await
}

/// Revokes a key: this instance takes it no more, others notice within 5 s. [`Error::NotFound`] when there is none of this id.
pub async fn revoke(keys: &ApiKeys, id: &str, by: &Actor) -> Result<()> {
    let revoked = keys.store.revoke_key(id, by).await;
    // Also after a failure: it may be revoked all the same.
    keys.cache.forget(id);
    revoked
}
