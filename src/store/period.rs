//! SQL of periods.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        board::{Board, PeriodKind},
        combination::CombinedFrom,
        id::{Batch, RankingId},
        name::Named as _,
        period::{Period, PeriodSelector, PeriodState, Progress},
        tier::Tiers,
    },
    store::{Administrator, Reader, ScoreWriter, rank::Version},
};

/// The period that a selector means, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPeriod {
    pub(crate) period: Period,
    /// The source of its answers: `None` before the first score, after its archive is dropped, and for
    /// a segment without players in a closed period.
    pub(crate) source: Option<PeriodSource>,
    /// Whether the period is closed and its archive is kept. For a segment without players, the archive
    /// of the whole period counts.
    pub(crate) has_archive: bool,
    /// Start of the time in which the selector means the period; `None` if unbounded.
    pub(crate) valid_from: Option<DateTime<Utc>>,
    /// End of the time in which the selector means the period; `None` if unbounded.
    pub(crate) valid_until: Option<DateTime<Utc>>,
    /// Snapshot of the sources of a combined board.
    pub(crate) combined: Option<Arc<CombinedFrom>>,
    /// Tiers of a closed period; none for other periods.
    pub(crate) tiers: Option<Tiers>,
}

/// The source that answers reads of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PeriodSource {
    Live(RankingRef),
    /// The archive of a closed period.
    Archive(ArchiveRef),
}

/// A closed period and the revision of its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ArchiveRef {
    pub(crate) board: i32,
    pub(crate) period_id: i64,
    /// Revision of the archive, from 1.
    pub(crate) revision: i32,
    /// Whether the period has a frozen top. Those of boards of templates show current names.
    pub(crate) has_frozen_top: bool,
}

impl ArchiveRef {
    /// Returns the public version of answers from the archive.
    pub(super) fn version(&self, epoch: &str) -> String {
        format!("{epoch}.a{}.{}", self.period_id, self.revision)
    }
}

/// A period and its current ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RankingRef {
    pub(crate) board: i32,
    /// The board whose players it ranks: `board` or, if that is a template, one of its boards.
    pub(crate) players_of: i32,
    pub(crate) period_id: i64,
    pub(crate) ranking_id: RankingId,
    /// Whether it has bucket rows. Without them, SQL answers only downloads and functions in psql.
    pub(crate) has_bucket_rows: bool,
}

impl RankingRef {
    /// Returns whether it belongs to a board of a template and has no bucket rows: its players are few.
    pub(crate) fn is_small(self) -> bool {
        self.players_of != self.board && !self.has_bucket_rows
    }
}

impl ResolvedPeriod {
    /// Returns whether the selector means the period at a time of the database's clock.
    pub(crate) fn holds_at(&self, at: DateTime<Utc>) -> bool {
        self.valid_from.is_none_or(|from| from <= at) && self.valid_until.is_none_or(|until| at < until)
    }
}

/// A period's kind, its first instant, and the first instant after it; `None` for `all_time`.
pub(crate) type PeriodBounds = (PeriodKind, Option<DateTime<Utc>>, Option<DateTime<Utc>>);

pub(super) fn state(name: &str) -> Result<PeriodState> {
    name.parse().map_err(|_| Error::Internal(format!("unknown state of a period: {name:?}")))
}

pub(super) fn kind(name: &str) -> Result<PeriodKind> {
    name.parse().map_err(|_| Error::Internal(format!("unknown kind of period: {name:?}")))
}

fn period(
    kind_name: &str,
    label: String,
    (starts_at, ends_at): (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    state_name: &str,
) -> Result<Period> {
    Ok(Period { kind: kind(kind_name)?, label, starts_at, ends_at, state: state(state_name)?, segment: None })
}

impl Reader {
    /// Returns the period that a selector means now on its board, the board's version in the same
    /// snapshot, and the profile revision. `None` for a board on which it means no period.
    pub(crate) async fn resolve_periods(
        &self,
        wanted: &[(&Board, &PeriodSelector)],
    ) -> Result<Vec<Option<(ResolvedPeriod, Version, i64)>>> {
        self.servers.require_coordinator()?;
        let (ids, owners): (Vec<i32>, Vec<i32>) = wanted.iter().map(|(board, _)| (board.id, board.owner)).unzip();
        let selectors: Vec<String> = wanted.iter().map(|(_, selector)| selector.to_string()).collect();
        let query = sqlx::query_file!("sql/queries/resolve_period.sql", &ids, &owners, &selectors);
        let mut found: Vec<_> = wanted.iter().map(|_| None).collect();
        for row in query.fetch_all(&self.readers).await? {
            let place = usize::try_from(row.place - 1).unwrap_or(usize::MAX);
            let Some((board, selector)) = wanted.get(place) else { continue };
            let (players_of, board, segment) = (board.id, board.owner, selector.segment());
            let tiers = row.tiers.filter(|_| row.ranking_id.is_none() && row.archive_revision.is_some());
            let resolved = ResolvedPeriod {
                period: Period {
                    segment: segment.cloned(),
                    ..period(&row.kind, row.label, (row.starts_at, row.ends_at), &row.state)?
                },
                source: match (row.period_id, row.ranking_id.zip(row.has_bucket_rows), row.archive_revision) {
                    (Some(period_id), Some((ranking_id, has_bucket_rows)), _) => {
                        let ranking_id = RankingId(ranking_id);
                        Some(PeriodSource::Live(RankingRef {
                            board,
                            players_of,
                            period_id,
                            ranking_id,
                            has_bucket_rows,
                        }))
                    }
                    (Some(period_id), None, Some(revision)) => {
                        let has_frozen_top = players_of == board;
                        Some(PeriodSource::Archive(ArchiveRef { board, period_id, revision, has_frozen_top }))
                    }
                    _ => None,
                },
                has_archive: row.archive_revision.is_some(),
                valid_from: row.valid_from,
                valid_until: row.valid_until,
                combined: row.combined.map(|Json(combined)| Arc::new(combined)),
                tiers: tiers.map(|tiers| Tiers::parse(&tiers)).transpose()?,
            };
            let version = Version { epoch: row.epoch, batches: Batch::from_numbers(row.batches) };
            found[place] = Some((resolved, version, row.revision));
        }
        Ok(found)
    }

    /// Returns the opened periods of a board, newest first, at most `limit` of each kind.
    pub(crate) async fn periods(&self, board: &Board, limit: u32) -> Result<Vec<Period>> {
        let rows = sqlx::query_file!("sql/queries/periods.sql", board.owner, i64::from(limit))
            .fetch_all(&self.readers)
            .await?;
        rows.into_iter().map(|row| period(&row.kind, row.label, (row.starts_at, row.ends_at), &row.state)).collect()
    }

    /// Returns up to `limit` opened segments of a period, in order.
    pub(crate) async fn segments(&self, board_id: i32, period: &Period, limit: i64) -> Result<Vec<String>> {
        let query =
            sqlx::query_file_scalar!("sql/queries/segments.sql", board_id, period.kind.name(), period.label, limit);
        Ok(query.fetch_all(&self.readers).await?)
    }

    /// Returns up to `limit` opened periods of a board, newest first. `only` restricts them to a
    /// kind; `after` is kind and label of the period after which they begin.
    pub(crate) async fn list_periods(
        &self,
        board: &Board,
        only: Option<PeriodKind>,
        after: Option<(PeriodKind, &str)>,
        limit: i64,
    ) -> Result<Vec<Period>> {
        let rows = sqlx::query_file!(
            "sql/queries/list_periods.sql",
            board.owner,
            only.map(PeriodKind::name),
            after.map(|(kind, _)| kind.name()),
            after.map(|(_, label)| label),
            limit
        )
        .fetch_all(&self.readers)
        .await?;
        rows.into_iter().map(|row| period(&row.kind, row.label, (row.starts_at, row.ends_at), &row.state)).collect()
    }

    /// Returns a player's standings in up to `limit` newest snapshots of a board, newest first.
    ///
    /// [`Error::NotFound`] if the player does not exist.
    pub(crate) async fn progress(&self, board: &Board, user_id: &str, limit: u64) -> Result<Vec<Progress>> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let rows = sqlx::query_file!("sql/queries/progress.sql", board.slug.as_str(), user_id, limit)
            .fetch_all(&self.readers)
            .await?;
        let progress = rows.into_iter().map(|row| Progress {
            period: Period {
                kind: PeriodKind::Snapshot,
                label: row.label,
                starts_at: None,
                ends_at: Some(row.ends_at),
                state: PeriodState::Closed,
                segment: None,
            },
            players: row.players,
            position: row.position,
            rank: row.rank,
            score: row.score,
            reached_at: row.reached_at,
            tiebreak: row.tiebreak,
            tier: row.tier,
        });
        Ok(progress.collect())
    }

    /// Returns the positions of players in the newest snapshot of a board. A player who is not in it
    /// has none.
    pub(crate) async fn snapshot_positions(&self, board_id: i32, user_ids: &[String]) -> Result<HashMap<String, u64>> {
        let rows = sqlx::query!(
            r#"SELECT user_id AS "user_id!", "position" AS "position!" FROM centile_store.snapshot_positions($1, $2)"#,
            board_id,
            user_ids
        )
        .fetch_all(&self.readers)
        .await?;
        Ok(rows.into_iter().map(|row| (row.user_id, row.position.unsigned_abs())).collect())
    }
}

impl ScoreWriter {
    /// Opens the periods of a board that contain these times.
    pub(crate) async fn open_periods(&self, board_id: i32, times: &[DateTime<Utc>]) -> Result<()> {
        self.reader.servers.require_coordinator()?;
        sqlx::query!("SELECT centile_store.open_periods($1, $2)", board_id, times)
            .fetch_one(&self.score_writers)
            .await?;
        Ok(())
    }

    /// Opens the rankings of segments: pairs of a period id and a segment.
    pub(crate) async fn open_segments(&self, board_id: i32, segments: Vec<(i64, String)>) -> Result<()> {
        self.reader.servers.require_coordinator()?;
        let (periods, segments): (Vec<i64>, Vec<String>) = segments.into_iter().unzip();
        let query = sqlx::query!("SELECT centile_store.open_segments($1, $2, $3)", board_id, &periods, &segments);
        query.fetch_one(&self.score_writers).await?;
        Ok(())
    }
}

impl Administrator {
    pub(crate) async fn now(&self) -> Result<DateTime<Utc>> {
        let now = sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(&self.writers).await?;
        Ok(now)
    }

    /// Returns kind and bounds of all opened periods of a board except seasons and
    /// snapshots.
    pub(crate) async fn period_bounds(&self, board_id: i32) -> Result<Vec<PeriodBounds>> {
        let rows = sqlx::query_file!("sql/queries/period_bounds.sql", board_id).fetch_all(&self.writers).await?;
        rows.into_iter().map(|row| Ok((kind(&row.kind)?, row.starts_at, row.ends_at))).collect()
    }
}
