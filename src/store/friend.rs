//! SQL of friends.

use crate::{
    Error, Result,
    model::{
        act::Actor,
        friend::{Friend, FriendsChange, FriendsChanged, FriendsOf},
        name::Named as _,
    },
    store::{Administrator, Reader, error::written, rank::PlayerGroup},
};

/// Result of an edge to add, as `centile_store.add_friends` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum EdgeResult {
    Added,
    Repeated,
    /// The player and the friend are the same.
    #[strum(serialize = "self")]
    SamePlayer,
    /// The player or the friend does not exist.
    Missing,
    /// The player or the friend was erased.
    Erased,
    /// The player has the maximum of friends.
    Full,
}

impl Reader {
    /// Returns the ids of a player and the player's friends; `None` if the player does not exist.
    pub(crate) async fn friend_ids(&self, friends: &FriendsOf) -> Result<Option<PlayerGroup>> {
        let query = sqlx::query_file!("sql/queries/friend_ids.sql", friends.user_id.as_str(), friends.mutual);
        let row = query.fetch_optional(&self.readers).await?;
        Ok(row.map(|row| {
            let mut user_ids = row.friend_ids;
            user_ids.push(row.id);
            PlayerGroup { owner: row.id, user_ids }
        }))
    }

    /// Returns up to `limit` friends with internal ids above `after`, each with this id; `None` if
    /// the player does not exist.
    pub(crate) async fn friends(
        &self,
        friends: &FriendsOf,
        after: i64,
        limit: i64,
    ) -> Result<Option<Vec<(i64, Friend)>>> {
        let query =
            sqlx::query_file!("sql/queries/friends.sql", friends.user_id.as_str(), friends.mutual, after, limit);
        let rows = query.fetch_all(&self.readers).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let found = rows.into_iter().filter_map(|row| {
            let (user_id, name, mutual) = (row.user_id?, row.name?, row.is_mutual?);
            Some((row.id?, Friend { user_id, name, avatar_url: row.avatar, mutual }))
        });
        Ok(Some(found.collect()))
    }
}

impl Administrator {
    /// Changes a player's friends, all or nothing.
    ///
    /// `boards` are the boards that the actor's key is limited to; empty for all boards.
    pub(crate) async fn change_friends(
        &self,
        user_id: &str,
        change: FriendsChange,
        friends: &[String],
        actor: Option<&Actor>,
        boards: &[String],
    ) -> Result<FriendsChanged> {
        let query = sqlx::query!(
            r#"SELECT added AS "added!", removed AS "removed!", friends AS "friends!"
               FROM centile.change_friends($1, $2, $3, $4, $5)"#,
            user_id,
            change.name(),
            friends,
            actor.map(Actor::as_str),
            boards,
        );
        let changed = written(query.fetch_one(&self.writers).await)?;
        Ok(FriendsChanged {
            added: changed.added.unsigned_abs(),
            removed: changed.removed.unsigned_abs(),
            friends: changed.friends.unsigned_abs(),
        })
    }

    /// Adds edges from players to friends. Returns the result of each.
    pub(crate) async fn add_friends(&self, user_ids: &[String], friend_ids: &[String]) -> Result<Vec<EdgeResult>> {
        let query =
            sqlx::query_scalar!(r#"SELECT centile_store.add_friends($1, $2) AS "results!""#, user_ids, friend_ids);
        let results = written(query.fetch_one(&self.writers).await)?;
        let unknown = |result: &String| Error::Internal(format!("unknown result of an edge: {result}"));
        results.iter().map(|result| result.parse().map_err(|_| unknown(result))).collect()
    }

    /// Records in the audit log that an import of friends begins.
    pub(crate) async fn record_friends_import(&self, source: &str, by: &Actor) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile_store.note_act($1, 'import_friends', NULL, NULL, jsonb_build_object('source', $2::text), 'friends')",
            by.as_str(),
            source,
        );
        written(query.fetch_one(&self.writers).await).map(drop)
    }
}
