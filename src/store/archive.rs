//! SQL that reads closed periods from their archives. Each call is one statement: one snapshot,
//! with one revision of the archive.
//!
//! The functions return `None` when the archive is no longer the requested one: it was refreshed or
//! dropped, or the selector means another period.

use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        rank::{Bar, Row},
        tier::TierCount,
    },
    store::{
        Store,
        period::{ArchiveRef, ResolvedPeriod},
        rank::{Group, LocalPart, LocalRow, LocalRows, StoredKey, StoredPlayer, StoredRow, StoredStanding},
    },
};

/// State that every statement about an archive returns with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchiveState {
    /// Epoch of the database.
    pub(crate) epoch: String,
    /// The period, and the revision of its archive.
    pub(crate) archive: ArchiveRef,
    /// Players in the archive.
    pub(crate) players: u64,
    /// Profile revision of the names in the answer.
    pub(crate) revision: i64,
}

impl ArchiveState {
    /// Returns the public version: opaque, and safe inside an `ETag`.
    pub(crate) fn version(&self) -> String {
        format!("{}.a{}.{}", self.epoch, self.archive.period_id, self.archive.revision)
    }

    /// Returns the unquoted entity tag of answers that show current names.
    pub(crate) fn etag(&self) -> String {
        format!("{}.{}", self.version(), self.revision)
    }
}

/// Builds the state from the columns that all statements share.
macro_rules! state_of {
    ($archive:expr, $row:expr) => {
        ArchiveState {
            epoch: $row.epoch,
            archive: $archive,
            players: $row.players.unsigned_abs(),
            revision: $row.revision,
        }
    };
}

/// Treats an archive dropped during the read as one that is no longer the requested one.
fn unless_dropped<T>(found: sqlx::Result<Option<T>>) -> Result<Option<T>> {
    const UNDEFINED_TABLE: &str = "42P01";
    match found {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(None),
        found => found.map_err(Error::from),
    }
}

/// A statement about an archive. Its first parameters check that the archive still answers for the
/// period.
macro_rules! query_archive {
    ($file:literal, $archive:expr, $resolved:expr $(, $argument:expr)*) => {
        sqlx::query_file!(
            $file,
            $archive.board,
            $archive.period_id,
            $archive.revision,
            $resolved.valid_from,
            $resolved.valid_until,
            $($argument),*
        )
    };
}

impl Store {
    /// Returns the state of an archive and its board's frozen top size. Reads no row of the
    /// archive.
    pub(crate) async fn archive_state(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
    ) -> Result<Option<(ArchiveState, u32)>> {
        let row =
            query_archive!("sql/queries/archive_state.sql", archive, resolved).fetch_optional(&self.readers).await?;
        Ok(row.map(|row| {
            let frozen_size = row.frozen_size.unsigned_abs();
            (state_of!(archive, row), frozen_size)
        }))
    }

    /// Returns the bytes of the frozen top.
    pub(crate) async fn frozen_top(&self, resolved: &ResolvedPeriod, archive: ArchiveRef) -> Result<Option<Vec<u8>>> {
        let row =
            query_archive!("sql/queries/archive_top.sql", archive, resolved).fetch_optional(&self.readers).await?;
        Ok(row.map(|row| row.frozen_top))
    }

    /// Returns the page that starts at a position.
    pub(crate) async fn archive_page(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        from: i64,
        limit: i32,
    ) -> Result<Option<(ArchiveState, Vec<StoredRow>)>> {
        let row = query_archive!("sql/queries/archive_page.sql", archive, resolved, from, limit)
            .fetch_optional(&self.readers)
            .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.rows.0)))
    }

    /// Returns the page below a key, which may come from the live ranking before the period was
    /// closed.
    pub(crate) async fn archive_page_after(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        key: StoredKey,
        limit: i32,
    ) -> Result<Option<(ArchiveState, Vec<StoredRow>)>> {
        let row = query_archive!(
            "sql/queries/archive_page_after.sql",
            archive,
            resolved,
            key.rank_key,
            key.tie_key,
            key.internal_id,
            limit
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.rows.0)))
    }

    /// Returns a player and the neighbours.
    pub(crate) async fn archive_standing(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        user_id: &str,
        around: i32,
    ) -> Result<Option<(ArchiveState, StoredStanding)>> {
        let row = query_archive!("sql/queries/archive_standing.sql", archive, resolved, user_id, around)
            .fetch_optional(&self.readers)
            .await;
        Ok(unless_dropped(row)?.map(|row| {
            let standing = StoredStanding {
                user_exists: row.user_exists,
                player: row.player.map(|Json(player)| player),
                rows: row.rows.0.into_iter().map(|stored| stored.row).collect(),
            };
            (state_of!(archive, row), standing)
        }))
    }

    /// Returns the chosen players, best first.
    pub(crate) async fn archive_chosen(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        user_ids: &[String],
    ) -> Result<Option<(ArchiveState, Vec<Row>)>> {
        let row = query_archive!("sql/queries/archive_chosen.sql", archive, resolved, user_ids)
            .fetch_optional(&self.readers)
            .await;
        Ok(unless_dropped(row)?
            .map(|row| (state_of!(archive, row), row.rows.0.into_iter().map(|player| player.row).collect())))
    }

    /// Returns a part of the ranking of a group.
    pub(crate) async fn archive_local(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        group: &Group,
        part: LocalPart,
        limit: i32,
    ) -> Result<Option<(ArchiveState, LocalRows)>> {
        let (from, key, around) = part.parameters(group);
        let row = query_archive!(
            "sql/queries/archive_local.sql",
            archive,
            resolved,
            group.user_ids.as_slice(),
            from,
            key.map(|key| key.rank_key),
            key.map(|key| key.tie_key),
            key.map(|key| -key.internal_id),
            around,
            limit
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?.map(|row| {
            let local = LocalRows { players: row.local_players.unsigned_abs(), rows: row.rows.0 };
            (state_of!(archive, row), local)
        }))
    }

    /// Returns the rank that a new player with this score would have had.
    pub(crate) async fn archive_newcomer(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        score: i64,
    ) -> Result<Option<(ArchiveState, u64)>> {
        let row = query_archive!("sql/queries/archive_newcomer.sql", archive, resolved, score)
            .fetch_optional(&self.readers)
            .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.rank.unsigned_abs())))
    }

    /// Returns percentiles and histogram.
    pub(crate) async fn archive_distribution(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
    ) -> Result<Option<(ArchiveState, (Vec<(u8, i64)>, Vec<Bar>))>> {
        let row = query_archive!("sql/queries/archive_distribution.sql", archive, resolved)
            .fetch_optional(&self.readers)
            .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), (row.percentiles.0, row.histogram.0))))
    }

    /// Returns the players of each tier of the period.
    pub(crate) async fn archive_tiers(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
    ) -> Result<Option<(ArchiveState, Vec<TierCount>)>> {
        let row =
            query_archive!("sql/queries/archive_tiers.sql", archive, resolved).fetch_optional(&self.readers).await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.tiers.0)))
    }
}
