//! SQL of API keys.

use chrono::{DateTime, Utc};

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::BoardPattern,
        key::{Key, NewKey, Role},
        name::Named as _,
    },
    store::{Administrator, Reader, error::written, undamaged},
};

/// A stored API key with the digest of its secret.
pub(crate) struct StoredApiKey {
    pub(crate) key: Key,
    pub(crate) secret_sha256: Vec<u8>,
}

/// A request for a key that may be repeated.
pub(crate) struct KeyRequest {
    /// SHA-256 of what identifies the request.
    pub(crate) sha256: [u8; 32],
    /// Salt from which the key's secret is derived.
    pub(crate) salt: [u8; 32],
}

/// Builds a [`Key`] from a row: each query has a row type of its own.
macro_rules! key {
    ($row:ident) => {
        Key {
            id: $row.id,
            name: $row.name,
            role: role(&$row.role)?,
            boards: boards(&$row.boards)?,
            created_at: $row.created_at,
            expires_at: $row.expires_at,
            revoked_at: $row.revoked_at,
            last_used_at: $row.last_used_at,
        }
    };
}

fn boards(slugs: &[String]) -> Result<Vec<BoardPattern>> {
    slugs.iter().map(|slug| slug.parse()).collect()
}

impl Reader {
    pub(crate) async fn keys(&self) -> Result<Vec<Key>> {
        let rows = sqlx::query_file!("sql/queries/keys.sql").fetch_all(&self.readers).await?;
        let keys = rows.into_iter().map(|row| {
            let name = format!("key {}", row.id);
            let key = || Ok(key!(row));
            (name, key())
        });
        Ok(undamaged(keys))
    }

    /// Returns the key with this id and the digest of its secret.
    pub(crate) async fn key(&self, id: &str) -> Result<Option<StoredApiKey>> {
        let query = sqlx::query_file!("sql/queries/key_by_id.sql", id);
        let row = self.servers.read_coordinator(query.fetch_optional(&self.readers)).await?;
        row.map(|row| Ok(StoredApiKey { key: key!(row), secret_sha256: row.secret_sha256 })).transpose()
    }

    /// Returns the ids of valid keys whose secrets have one of these digests.
    pub(crate) async fn keys_of_digests(&self, digests: &[Vec<u8>]) -> Result<Vec<String>> {
        let rows = sqlx::query_file!("sql/queries/keys_of_digests.sql", digests).fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }
}

impl Administrator {
    /// Stores a key; returns the time of creation.
    pub(crate) async fn create_key(
        &self,
        id: &str,
        new: &NewKey,
        secret_sha256: &[u8],
        request: Option<&KeyRequest>,
        by: &Actor,
    ) -> Result<DateTime<Utc>> {
        let boards: Vec<String> = new.boards.iter().map(ToString::to_string).collect();
        let query = sqlx::query_scalar!(
            r#"SELECT centile.create_key($1, $2, $3, $4, $5, $6, $7, $8, $9) AS "created_at!""#,
            id,
            new.name,
            new.role.name(),
            &boards,
            new.expires_at,
            secret_sha256,
            by.as_str(),
            request.map(|request| &request.sha256[..]),
            request.map(|request| &request.salt[..])
        );
        written(query.fetch_one(&self.writers).await)
    }

    /// Returns the key that the request with this digest has created, and the request's salt.
    pub(crate) async fn key_of_request(&self, sha256: &[u8]) -> Result<Option<(Key, Vec<u8>)>> {
        let row = sqlx::query_file!("sql/queries/key_of_request.sql", sha256).fetch_optional(&self.writers).await?;
        row.map(|row| Ok((key!(row), row.request_salt))).transpose()
    }

    /// Records the use of a key, to the minute.
    pub(crate) async fn touch_key(&self, id: &str) -> Result<()> {
        self.reader.servers.require_coordinator()?;
        let query = sqlx::query!(
            "UPDATE centile_store.api_keys SET last_used_at = date_trunc('minute', now())
             WHERE id = $1 AND last_used_at IS DISTINCT FROM date_trunc('minute', now())",
            id
        );
        written(query.execute(&self.writers).await).map(drop)
    }

    pub(crate) async fn revoke_key(&self, id: &str, by: &Actor) -> Result<()> {
        let query = sqlx::query!("SELECT centile.revoke_key($1, $2)", id, by.as_str());
        written(query.fetch_one(&self.writers).await).map(drop)
    }
}

fn role(name: &str) -> Result<Role> {
    name.parse().map_err(|_| Error::Internal(format!("a key has the unknown role {name:?}")))
}
