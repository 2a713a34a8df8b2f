//! Users in the database.

use crate::{
    Result,
    model::{
        act::{Act, Actor},
        user::{Profile, User},
    },
    store::Store,
};

/// A ban or an unban under way, which the user's internal id belongs to, whatever the user is called meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ban {
    internal_id: i64,
    /// Whose turn it is: a later one has another number, and counts.
    number: i64,
    banned: bool,
}

impl Store {
    /// Makes the users that do not exist yet.
    pub(crate) async fn ensure_users(&self, user_ids: &[String], names: &[Option<String>]) -> Result<()> {
        let query = sqlx::query!("SELECT centile.ensure_users($1, $2)", user_ids, names as &[Option<String>]);
        query.fetch_all(&self.recorders).await?;
        Ok(())
    }

    /// Gives users new names.
    pub(crate) async fn rename_users(&self, user_ids: &[String], names: &[Option<String>]) -> Result<()> {
        sqlx::query!("SELECT centile.rename_users($1, $2)", user_ids, names as &[Option<String>])
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Makes or changes a user; tells whether it was made. `boards` limits whom the actor may change;
    /// none for all boards.
    pub(crate) async fn put_user(
        &self,
        user_id: &str,
        profile: &Profile,
        actor: Option<&Actor>,
        boards: &[String],
    ) -> Result<bool> {
        let avatar = profile.avatar.as_deref();
        let made = sqlx::query_scalar!(
            r#"SELECT centile.put_user($1, $2, $3, $4, $5, $6, $7) AS "made!""#,
            user_id,
            profile.name,
            avatar.filter(|address| !address.is_empty()),
            avatar.is_some(),
            profile.metadata,
            actor.map(Actor::as_str),
            boards,
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(made)
    }

    /// The user of this id.
    pub(crate) async fn user(&self, user_id: &str) -> Result<Option<User>> {
        let row = sqlx::query_file!("sql/queries/user.sql", user_id).fetch_optional(&self.readers).await?;
        Ok(row.map(|row| User {
            user_id: row.user_id,
            name: row.name,
            avatar: row.avatar,
            metadata: row.metadata,
            banned: row.banned,
        }))
    }

    /// Forgets who a user was, but for frozen tops and events, which [`Store::erase_from_tops`] goes through; gives the new id. Under
    /// an id of the caller's own the answer is the same for some days.
    pub(crate) async fn erase_user(&self, user_id: &str, request_id: Option<&str>, by: &Actor) -> Result<String> {
        let erased = sqlx::query_scalar!(
            r#"SELECT user_id AS "user_id!" FROM centile.erase_user($1, $2, $3, p_in_steps => true)"#,
            user_id,
            by.as_str(),
            request_id,
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(erased)
    }

    /// Goes on with the erasure of the user who has this id now, in up to `limit` closed periods; gives those, and whether it is done.
    pub(crate) async fn erase_from_tops(&self, erased: &str, limit: i32) -> Result<(Vec<i64>, bool)> {
        let step = sqlx::query!(
            r#"SELECT period_ids AS "period_ids!", is_done AS "is_done!" FROM centile_store.erase_from_tops($1, $2)"#,
            erased,
            limit,
        )
        .fetch_one(&self.writers)
        .await?;
        Ok((step.period_ids, step.is_done))
    }

    /// New ids of users whose erasure is under way, or was cut short.
    pub(crate) async fn unfinished_erasures(&self) -> Result<Vec<String>> {
        let erased = sqlx::query_file_scalar!("sql/queries/unfinished_erasures.sql").fetch_all(&self.writers).await?;
        Ok(erased)
    }

    /// Begins a ban or an unban of a user on all boards.
    pub(crate) async fn begin_ban(&self, user_id: &str, banned: bool, act: &Act) -> Result<Ban> {
        let begun = sqlx::query!(
            r#"SELECT user_id AS "user_id!", act AS "act!" FROM centile_store.begin_ban($1, $2, $3, $4)"#,
            user_id,
            banned,
            act.reason(),
            act.by.as_str()
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(Ban { internal_id: begun.user_id, number: begun.act, banned })
    }

    /// Bans or unbans a user on one board. [`crate::Error::Conflict`] once a later ban or unban has begun.
    pub(crate) async fn ban_on_board(&self, board: &str, ban: Ban, act: &Act) -> Result<()> {
        sqlx::query!(
            "SELECT centile_store.ban_player($1, $2, $3, $4, $5, $6)",
            board,
            ban.internal_id,
            ban.banned,
            act.reason(),
            act.by.as_str(),
            ban.number,
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(())
    }

    /// Ends a ban or an unban that has gone over all boards; gives the id that the user has now.
    pub(crate) async fn end_ban(&self, ban: Ban, act: &Act) -> Result<String> {
        let user_id = sqlx::query_scalar!(
            r#"SELECT centile_store.end_ban($1, $2, $3, $4, $5) AS "user_id!""#,
            ban.internal_id,
            ban.number,
            ban.banned,
            act.reason(),
            act.by.as_str()
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(user_id)
    }
}
