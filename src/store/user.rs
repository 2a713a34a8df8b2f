//! SQL of users.

use crate::{
    Error, Result,
    model::{
        act::{Act, Actor},
        board::Reading,
        metadata::Metadata,
        name::Named as _,
        user::{Profile, User},
    },
    store::{Administrator, Reader, ScoreWriter, cluster::LANE_OF_USER, error::written},
};

/// The members of profiles that a caller may read.
#[derive(Debug)]
pub(crate) struct PublicMembers<'a> {
    /// Names of the members.
    pub(crate) names: &'a [String],
    /// Readers of profiles without a setting of their own.
    pub(crate) default: Reading,
    /// Whether the caller may read private profiles.
    pub(crate) reads_private: bool,
}

/// A ban or an unban in progress. It refers to the internal id, which survives a change of the
/// caller's id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ban {
    internal_id: i64,
    /// Number of this ban or unban. A later one gets another number, and wins.
    number: i64,
    banned: bool,
}

/// A change of a user's attributes that is not yet applied to all boards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingMove {
    internal_id: i64,
    /// Profile revision of the change. A later change has a greater one, and no other user has the same.
    number: i64,
}

impl Reader {
    /// Returns the user with this id.
    pub(crate) async fn user(&self, user_id: &str) -> Result<Option<User>> {
        let row = sqlx::query_file!("sql/queries/user.sql", user_id).fetch_optional(&self.readers).await?;
        let Some(row) = row else { return Ok(None) };
        let damaged = |what| Error::Internal(format!("the profile of user {user_id} has unknown {what}"));
        Ok(Some(User {
            reading: row.reading.map(|reading| reading.parse().map_err(|_| damaged("readers"))).transpose()?,
            user_id: row.user_id,
            name: row.name,
            avatar: row.avatar,
            metadata: Metadata::stored(row.metadata),
            attributes: serde_json::from_str(&row.attributes).map_err(|_| damaged("attributes"))?,
            banned: row.banned,
        }))
    }

    /// Returns the public members of the profiles of users, in their order.
    pub(crate) async fn public_profiles(
        &self,
        user_ids: &[&str],
        public: &PublicMembers<'_>,
    ) -> Result<Vec<Option<Metadata>>> {
        let mut found = vec![None; user_ids.len()];
        let query = sqlx::query_file!(
            "sql/queries/public_profiles.sql",
            user_ids as &[&str],
            public.names,
            public.default.name(),
            public.reads_private
        );
        for row in query.fetch_all(&self.readers).await? {
            let profile = usize::try_from(row.n - 1).ok().and_then(|index| found.get_mut(index));
            *profile.ok_or_else(|| Error::Internal(format!("unexpected profile {}", row.n)))? =
                Some(Metadata::stored(row.profile));
        }
        Ok(found)
    }

    /// Returns the ids of users whose id or name begins with a text, up to `limit` of each.
    pub(crate) async fn users_named(&self, text: &str, limit: u32) -> Result<Vec<String>> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let query = sqlx::query_scalar!(r#"SELECT centile_store.users_named($1, $2) AS "user_ids!""#, text, limit);
        Ok(query.fetch_one(&self.readers).await?)
    }
}

impl ScoreWriter {
    /// Creates the users that do not exist.
    pub(crate) async fn ensure_users(&self, user_ids: &[String], names: &[Option<String>]) -> Result<()> {
        for (pool, user_ids, names) in self.by_server(user_ids, names) {
            let query = sqlx::query!("SELECT centile.ensure_users($1, $2)", &user_ids, &names as &[Option<String>]);
            query.fetch_all(&pool).await?;
        }
        Ok(())
    }
}

impl Administrator {
    pub(crate) async fn rename_users(&self, user_ids: &[String], names: &[Option<String>]) -> Result<()> {
        let query = sqlx::query!("SELECT centile.rename_users($1, $2)", user_ids, names as &[Option<String>]);
        written(query.fetch_one(&self.writers).await).map(drop)
    }

    /// Creates or updates a user; returns whether the user was created.
    ///
    /// `boards` are the boards that the actor's key is limited to; empty for all boards.
    pub(crate) async fn put_user(
        &self,
        user_id: &str,
        profile: &Profile,
        actor: Option<&Actor>,
        boards: &[String],
    ) -> Result<bool> {
        let avatar = profile.avatar.as_deref();
        let attributes = (!profile.attributes.is_empty()).then(|| serde_json::json!(profile.attributes));
        let query = sqlx::query_scalar!(
            r#"SELECT centile.put_user($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8, $9) AS "made!""#,
            user_id,
            profile.name,
            avatar.filter(|address| !address.is_empty()),
            avatar.is_some(),
            profile.metadata.as_ref().map(Metadata::as_str),
            actor.map(Actor::as_str),
            boards,
            attributes,
            profile.reading.map(|reading| reading.map_or("default", Reading::name)),
        );
        written(query.fetch_one(&self.writers).await)
    }

    /// Returns the change of a user's attributes that is not yet applied to all boards.
    pub(crate) async fn pending_move(&self, user_id: &str) -> Result<Option<PendingMove>> {
        let query = sqlx::query_as!(
            PendingMove,
            r#"SELECT m.user_id AS internal_id, m.number
               FROM centile_store.attribute_moves m JOIN centile_store.users u ON u.id = m.user_id WHERE u.external_id = $1"#,
            user_id
        );
        Ok(query.fetch_optional(&self.writers).await?)
    }

    /// Returns up to 1,000 users with such a change, those of the earliest changes first.
    pub(crate) async fn unfinished_moves(&self) -> Result<Vec<String>> {
        let query = sqlx::query_scalar!(
            "SELECT u.external_id FROM centile_store.attribute_moves m JOIN centile_store.users u ON u.id = m.user_id
             ORDER BY m.changed_at, m.user_id LIMIT 1000"
        );
        Ok(query.fetch_all(&self.writers).await?)
    }

    /// Returns the boards with segments: id and slug. Reads from the primary, because a replica may be
    /// behind the change of attributes.
    pub(crate) async fn boards_with_segments(&self) -> Result<Vec<(i32, String)>> {
        let boards = sqlx::query!("SELECT id, slug FROM centile_store.boards WHERE segments <> '{}' ORDER BY id")
            .fetch_all(&self.writers)
            .await?;
        Ok(boards.into_iter().map(|board| (board.id, board.slug)).collect())
    }

    /// Moves a user to the segments of the current attributes on one board.
    pub(crate) async fn move_on_board(&self, board: &str, pending: PendingMove) -> Result<()> {
        let query = sqlx::query!("SELECT centile_store.move_player($1, $2)", board, pending.internal_id);
        written(query.fetch_one(&self.writers_of_row(LANE_OF_USER, pending.internal_id).await?).await).map(drop)
    }

    /// Completes a change of attributes, unless they have changed again.
    pub(crate) async fn end_move(&self, pending: PendingMove) -> Result<()> {
        let query = sqlx::query!(
            "DELETE FROM centile_store.attribute_moves WHERE user_id = $1 AND number = $2",
            pending.internal_id,
            pending.number
        );
        written(query.execute(&self.writers).await).map(drop)
    }

    /// Erases a user's identity; returns the new id.
    ///
    /// [`Self::erase_from_tops`] then erases it from frozen tops and webhook messages. A repeated
    /// request with the same `request_id` returns the same new id for some days.
    pub(crate) async fn erase_user(&self, user_id: &str, request_id: Option<&str>, by: &Actor) -> Result<String> {
        let query = sqlx::query_scalar!(
            r#"SELECT user_id AS "user_id!" FROM centile.erase_user($1, $2, $3, p_in_steps => true)"#,
            user_id,
            by.as_str(),
            request_id,
        );
        written(query.fetch_one(&self.writers).await)
    }

    /// Continues the erasure of the user with this new id in up to `limit` closed periods.
    ///
    /// Returns those periods, and whether the erasure is complete.
    pub(crate) async fn erase_from_tops(&self, erased: &str, limit: i32) -> Result<(Vec<i64>, bool)> {
        let query = sqlx::query!(
            r#"SELECT period_ids AS "period_ids!", is_done AS "is_done!" FROM centile_store.erase_from_tops($1, $2)"#,
            erased,
            limit,
        );
        let step = written(query.fetch_one(&self.writers).await)?;
        Ok((step.period_ids, step.is_done))
    }

    /// Returns the new ids of users whose erasure is not complete.
    pub(crate) async fn unfinished_erasures(&self) -> Result<Vec<String>> {
        let erased = sqlx::query_file_scalar!("sql/queries/unfinished_erasures.sql").fetch_all(&self.writers).await?;
        Ok(erased)
    }

    /// Starts a ban or an unban of a user on all boards.
    pub(crate) async fn begin_ban(&self, user_id: &str, banned: bool, act: &Act) -> Result<Ban> {
        let query = sqlx::query!(
            r#"SELECT user_id AS "user_id!", act AS "act!" FROM centile_store.begin_ban($1, $2, $3, $4)"#,
            user_id,
            banned,
            act.reason(),
            act.by.as_str()
        );
        let begun = written(query.fetch_one(&self.writers_of_user(user_id)).await)?;
        Ok(Ban { internal_id: begun.user_id, number: begun.act, banned })
    }

    /// Bans or unbans a user on one board.
    ///
    /// Returns [`crate::Error::Conflict`] once a later ban or unban has started.
    pub(crate) async fn ban_on_board(&self, board: &str, ban: Ban, act: &Act) -> Result<()> {
        let query = sqlx::query!(
            "SELECT centile_store.ban_player($1, $2, $3, $4, $5, $6)",
            board,
            ban.internal_id,
            ban.banned,
            act.reason(),
            act.by.as_str(),
            ban.number,
        );
        written(query.fetch_one(&self.writers_of_row(LANE_OF_USER, ban.internal_id).await?).await).map(drop)
    }

    /// Returns the boards of templates on which the user has a row: template and slug.
    pub(crate) async fn template_boards_of(&self, ban: Ban) -> Result<Vec<(i32, String)>> {
        let query = sqlx::query!(
            "SELECT n.template_id, n.slug FROM centile_store.players p JOIN centile_store.template_boards n ON n.id = p.board_id
             WHERE p.user_id = $1 ORDER BY n.id",
            ban.internal_id
        );
        let boards = query.fetch_all(&self.writers).await?;
        Ok(boards.into_iter().map(|board| (board.template_id, board.slug)).collect())
    }

    /// Completes a ban or an unban after the last board; returns the user's current id.
    pub(crate) async fn end_ban(&self, ban: Ban, act: &Act) -> Result<String> {
        let query = sqlx::query_scalar!(
            r#"SELECT centile_store.end_ban($1, $2, $3, $4, $5) AS "user_id!""#,
            ban.internal_id,
            ban.number,
            ban.banned,
            act.reason(),
            act.by.as_str()
        );
        written(query.fetch_one(&self.writers_of_row(LANE_OF_USER, ban.internal_id).await?).await)
    }
}
