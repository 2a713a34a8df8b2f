//! Users in the database.

use super::Store;
use crate::{
    Result,
    act::{Act, Actor},
    user::{Profile, User},
};

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

    /// Makes or changes a user; tells whether it was made.
    pub(crate) async fn put_user(&self, user_id: &str, profile: &Profile) -> Result<bool> {
        let avatar = profile.avatar.as_deref();
        let made = sqlx::query_scalar!(
            r#"SELECT centile.put_user($1, $2, $3, $4, $5) AS "made!""#,
            user_id,
            profile.name,
            avatar.filter(|address| !address.is_empty()),
            avatar.is_some(),
            profile.metadata,
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

    /// Marks a user as banned or not.
    pub(crate) async fn mark_banned(&self, user_id: &str, banned: bool, act: &Act) -> Result<()> {
        sqlx::query!("SELECT centile.mark_banned($1, $2, $3, $4)", user_id, banned, act.reason(), act.by.as_str())
            .fetch_one(&self.writers)
            .await?;
        Ok(())
    }

    /// Forgets who a user was; gives the new id, and the closed periods whose frozen tops named the user.
    pub(crate) async fn erase_user(&self, user_id: &str, by: &Actor) -> Result<(String, Vec<i64>)> {
        let erased = sqlx::query!(
            r#"SELECT user_id AS "user_id!", period_ids AS "period_ids!" FROM centile.erase_user($1, $2)"#,
            user_id,
            by.as_str()
        )
        .fetch_one(&self.writers)
        .await?;
        Ok((erased.user_id, erased.period_ids))
    }

    /// Bans or unbans a user on one board.
    pub(crate) async fn ban_user(&self, board: &str, user_id: &str, banned: bool, act: &Act) -> Result<()> {
        sqlx::query!(
            "SELECT centile.ban_user($1, $2, $3, $4, $5)",
            board,
            user_id,
            banned,
            act.reason(),
            act.by.as_str()
        )
        .fetch_one(&self.writers)
        .await?;
        Ok(())
    }
}
