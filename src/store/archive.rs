//! Reading closed periods from their archives. Each call is one statement: one snapshot, which holds one revision.
//!
//! `None` means that the archive is no longer the one that was meant: refreshed since, let go, or another period's.

use sqlx::types::Json;

use crate::{
    Error, Result,
    model::rank::{Bar, Row},
    store::{
        Store,
        period::{ArchiveRef, MeantPeriod},
        rank::{StoredKey, StoredPlayer, StoredRow, StoredStanding},
    },
};

/// What every statement about an archive says beside its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchiveState {
    /// This life of the database.
    pub(crate) epoch: String,
    /// The period, and the revision of its archive.
    pub(crate) archive: ArchiveRef,
    /// Players in the archive.
    pub(crate) players: u64,
    /// Profile revision: which names the answer shows.
    pub(crate) revision: i64,
}

impl ArchiveState {
    /// The outside form of its version: opaque, without the characters that an `ETag` could trip over.
    pub(crate) fn version(&self) -> String {
        format!("{}.a{}.{}", self.epoch, self.archive.period_id, self.archive.revision)
    }

    /// Entity tag, without quotes, of answers that show the names of now.
    pub(crate) fn etag(&self) -> String {
        format!("{}.{}", self.version(), self.revision)
    }
}

/// The state columns that the statements share.
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

/// An archive that was dropped under a reader whose snapshot is older than the drop is one that is no longer meant.
fn unless_dropped<T>(found: sqlx::Result<Option<T>>) -> Result<Option<T>> {
    const UNDEFINED_TABLE: &str = "42P01";
    match found {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Ok(None),
        found => found.map_err(Error::from),
    }
}

impl Store {
    /// State of an archive and the size of a frozen top on its board; looks at no row of the archive.
    pub(crate) async fn archive_state(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
    ) -> Result<Option<(ArchiveState, u32)>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_state.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(row.map(|row| {
            let frozen_size = row.frozen_size.unsigned_abs();
            (state_of!(archive, row), frozen_size)
        }))
    }

    /// The bytes of the frozen top.
    pub(crate) async fn frozen_top(&self, meant: &MeantPeriod, archive: ArchiveRef) -> Result<Option<Vec<u8>>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_top.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(row.map(|row| row.frozen_top))
    }

    /// A page from a position.
    pub(crate) async fn archive_page(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
        from: i64,
        limit: i32,
    ) -> Result<Option<(ArchiveState, Vec<StoredRow>)>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_page.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
            from,
            limit,
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.rows.0)))
    }

    /// The page below a key, which may be of the ranking before the period was closed.
    pub(crate) async fn archive_page_after(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
        key: StoredKey,
        limit: i32,
    ) -> Result<Option<(ArchiveState, Vec<StoredRow>)>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_page_after.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
            key.rank_key,
            key.tie_key,
            key.internal_id,
            limit,
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.rows.0)))
    }

    /// A player and the neighbours.
    pub(crate) async fn archive_standing(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
        user_id: &str,
        around: i32,
    ) -> Result<Option<(ArchiveState, StoredStanding)>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_standing.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
            user_id,
            around,
        )
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

    /// Chosen players, best first.
    pub(crate) async fn archive_chosen(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
        user_ids: &[String],
    ) -> Result<Option<(ArchiveState, Vec<Row>)>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_chosen.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
            user_ids,
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?
            .map(|row| (state_of!(archive, row), row.rows.0.into_iter().map(|player| player.row).collect())))
    }

    /// The rank that a newcomer with this score would have had.
    pub(crate) async fn archive_newcomer(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
        score: i64,
    ) -> Result<Option<(ArchiveState, u64)>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_newcomer.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
            score,
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), row.rank.unsigned_abs())))
    }

    /// Percentiles and histogram.
    pub(crate) async fn archive_distribution(
        &self,
        meant: &MeantPeriod,
        archive: ArchiveRef,
    ) -> Result<Option<(ArchiveState, (Vec<(u8, i64)>, Vec<Bar>))>> {
        let row = sqlx::query_file!(
            "sql/queries/archive_distribution.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            meant.meant_from,
            meant.meant_until,
        )
        .fetch_optional(&self.readers)
        .await;
        Ok(unless_dropped(row)?.map(|row| (state_of!(archive, row), (row.percentiles.0, row.histogram.0))))
    }
}
