//! A whole period, read from its first row to its last in one snapshot, a stretch at a time.

use std::time::Duration;

use sqlx::{Executor as _, PgConnection};
use tokio::time::timeout;

use crate::{
    Error, Result,
    model::{export::Line, rank::AnsweredBy},
    store::{
        Store, WAY_BACK,
        archive::ArchiveState,
        period::{MeantPeriod, Source},
        rank::{RankingState, Version},
    },
};

/// Rows of a stretch: some hundred kilobytes, and some milliseconds.
const STRETCH: i32 = 2_000;

/// How long a stretch may take: past that the server is frozen, or cut off. From a disk that has to seek for each player it is some
/// ten seconds.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// One state from the first row to the last, and plans as readers have them: each statement is a look-up that no value changes. By the name
/// whoever looks for what keeps vacuum waiting finds it.
const BEGIN: &str = "SET application_name = 'centile export';

    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL plan_cache_mode = force_generic_plan;
    SET LOCAL enable_seqscan = off;
    SET LOCAL enable_bitmapscan = off;
    SET LOCAL max_parallel_workers_per_gather = 0";

/// The state that is read.
#[derive(Debug)]
pub(crate) enum State {
    /// Of a live ranking.
    Live(RankingState),
    /// Of an archive.
    Archive(ArchiveState),
}

/// A period in a snapshot that lasts as long as this value, which has a connection for itself. Vacuum keeps all that has been deleted
/// since, so it must not last for ever.
#[derive(Debug)]
pub(crate) struct Snapshot {
    connection: PgConnection,
    source: Source,
    /// Position of the next row.
    next: i64,
}

impl Store {
    /// Takes a snapshot of what is meant by a period; `None` when `source` no longer answers for it.
    pub(crate) async fn snapshot(&self, meant: &MeantPeriod, source: Source) -> Result<Option<(Snapshot, State)>> {
        timeout(self.patience() + WAY_BACK, self.take_snapshot(meant, source)).await.unwrap_or_else(|_| Err(frozen()))
    }

    async fn take_snapshot(&self, meant: &MeantPeriod, source: Source) -> Result<Option<(Snapshot, State)>> {
        let mut connection = self.patient_connection().await?;
        connection.execute(BEGIN).await?;
        let state = match source {
            Source::Live(ranking) => sqlx::query_file!(
                "sql/queries/ranking_state.sql",
                ranking.board,
                ranking.period_id,
                ranking.ranking_id,
                meant.meant_from,
                meant.meant_until,
            )
            .fetch_optional(&mut connection)
            .await?
            .map(|row| {
                State::Live(RankingState {
                    version: Version { epoch: row.epoch, layout: row.layout, batches: row.batches },
                    players: row.players.unsigned_abs(),
                    revision: row.revision,
                    answered_by: AnsweredBy::Sql,
                })
            }),
            Source::Archive(archive) => sqlx::query_file!(
                "sql/queries/archive_state.sql",
                archive.board,
                archive.period_id,
                archive.revision,
                meant.meant_from,
                meant.meant_until,
            )
            .fetch_optional(&mut connection)
            .await?
            .map(|row| {
                State::Archive(ArchiveState {
                    epoch: row.epoch,
                    archive,
                    players: row.players.unsigned_abs(),
                    revision: row.revision,
                })
            }),
        };
        Ok(state.map(|state| (Snapshot { connection, source, next: 1 }, state)))
    }
}

impl Snapshot {
    /// The next rows, best first; none after the last.
    pub(crate) async fn read_on(&mut self) -> Result<Vec<Line>> {
        let lines = timeout(READ_WITHIN, self.read()).await.unwrap_or_else(|_| Err(frozen()))?;
        self.next += i64::try_from(lines.len()).unwrap_or(i64::MAX);
        Ok(lines)
    }

    async fn read(&mut self) -> Result<Vec<Line>> {
        macro_rules! lines {
            ($file:literal, $id:expr) => {
                sqlx::query_file!($file, $id, self.next, STRETCH)
                    .map(|row| Line {
                        position: row.position.unsigned_abs(),
                        rank: row.rank.unsigned_abs(),
                        user_id: row.user_id,
                        user_name: row.user_name,
                        score: row.score,
                        reached_at: row.reached_at,
                    })
                    .fetch_all(&mut self.connection)
                    .await?
            };
        }
        Ok(match self.source {
            Source::Live(ranking) => lines!("sql/queries/export.sql", ranking.ranking_id),
            Source::Archive(archive) => lines!("sql/queries/archive_export.sql", archive.period_id),
        })
    }
}

fn frozen() -> Error {
    Error::unavailable("PostgreSQL does not answer")
}
