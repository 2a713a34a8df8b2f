//! SQL that reads rankings, and archives of closed periods. Each call is one statement, with one
//! snapshot, or on a cluster one per server: its answer is exact for the version it names.
//!
//! [`Error::Replaced`] means that the selector no longer means the source: the ranking or archive was
//! replaced or dropped.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        id::Batch,
        key,
        rank::{AnsweredBy, Bar, Header, Row},
        tier::{TierCount, Tiers},
    },
    store::{
        Reader,
        period::{ArchiveRef, PeriodSource, RankingRef, ResolvedPeriod},
    },
};

/// A state of a board, as the database numbers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) epoch: String,
    /// Number of the last batch of each lane.
    pub(crate) batches: Vec<Batch>,
}

/// Identifies the bucket counts of a ranking: equal values mean equal counts. A batch changes it only
/// if it changes the number of players in a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CountsVersion {
    pub(crate) epoch: String,
    /// Number of the ranking's layout.
    pub(crate) layout: i32,
    /// Batch that last changed the counts, by lane.
    pub(crate) revisions: Vec<i64>,
}

/// Returns the first eight bytes of the SHA-256 of the numbers, in hexadecimal.
fn digest(numbers: impl Iterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    key::hex(&Sha256::digest(numbers.join("-"))[..8])
}

/// State that an answer is exact for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankingState {
    pub(crate) epoch: String,
    /// State of the ranking, or the archive.
    pub(crate) of: StateOf,
    pub(crate) players: u64,
    /// Profile revision of the names in the answer.
    pub(crate) revision: i64,
    pub(crate) answered_by: AnsweredBy,
}

/// A state in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateOf {
    /// The board at the last batch of each lane.
    Batches(Vec<Batch>),
    /// A revision of an archive.
    Archive(ArchiveRef),
}

impl RankingState {
    /// Returns the state that a statement has read.
    pub(super) fn stored(epoch: String, of: StateOf, players: i64, revision: i64) -> Self {
        Self { epoch, of, players: players.unsigned_abs(), revision, answered_by: AnsweredBy::Sql }
    }

    /// Returns the public version: opaque, and safe inside an `ETag` and a cache key.
    ///
    /// It holds a digest of the lanes' batches, so that its length does not grow with the lanes.
    pub(crate) fn version(&self) -> String {
        match &self.of {
            StateOf::Batches(batches) => format!("{}.{}", self.epoch, digest(batches.iter().map(|batch| batch.0))),
            StateOf::Archive(archive) => archive.version(&self.epoch),
        }
    }

    /// Returns the unquoted entity tag of answers from an archive that show current names.
    pub(crate) fn etag(&self) -> Option<String> {
        matches!(self.of, StateOf::Archive(_)).then(|| format!("{}.{}", self.version(), self.revision))
    }

    /// Returns the header of an answer in this state.
    pub(crate) fn header(&self, resolved: &ResolvedPeriod) -> Header {
        Header {
            period: resolved.period.clone(),
            version: self.version(),
            players: self.players,
            etag: self.etag(),
            answered_by: self.answered_by,
            combined: resolved.combined.clone().filter(|_| matches!(self.of, StateOf::Archive(_))),
            tiers: resolved.tiers.clone(),
        }
    }
}

/// Runs a statement about the source of a period: the first on a ranking, the second on an archive.
/// Returns the state and a value of the row. The first parameters check that the selector still means
/// the source.
macro_rules! read {
    ($executor:expr, $resolved:expr, $source:expr, |$row:ident| $value:expr,
     $file:literal $(, $argument:expr)*; $archive_file:literal $(, $archive_argument:expr)*) => {
        match $source {
            PeriodSource::Live(ranking) => {
                let query = sqlx::query_file!(
                    $file,
                    ranking.board,
                    ranking.period_id,
                    ranking.ranking_id.0,
                    $resolved.valid_from,
                    $resolved.valid_until,
                    $($argument),*
                );
                let $row = query.fetch_all($executor).await?.pop().ok_or(Error::Replaced)?;
                let value = $value;
                let of = StateOf::Batches(Batch::from_numbers($row.batches));
                Ok((RankingState::stored($row.epoch, of, $row.players, $row.revision), value))
            }
            PeriodSource::Archive(archive) => {
                let query = sqlx::query_file!(
                    $archive_file,
                    archive.board,
                    archive.period_id,
                    archive.revision,
                    $resolved.valid_from,
                    $resolved.valid_until,
                    $($archive_argument),*
                );
                let rows = query.fetch_all($executor).await.map_err(unless_dropped)?;
                let $row = { rows }.pop().ok_or(Error::Replaced)?;
                let value = $value;
                Ok((RankingState::stored($row.epoch, StateOf::Archive(archive), $row.players, $row.revision), value))
            }
        }
    };
}
pub(super) use read;

/// Treats an archive dropped during the read as one that is no longer the requested one.
pub(super) fn unless_dropped(error: sqlx::Error) -> Error {
    const UNDEFINED_TABLE: &str = "42P01";
    match error {
        sqlx::Error::Database(error) if error.code().as_deref() == Some(UNDEFINED_TABLE) => Error::Replaced,
        error => error.into(),
    }
}

/// A row of a ranking with its key, from which a cursor is made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredRow {
    #[serde(flatten)]
    pub(crate) row: Row,
    #[serde(flatten)]
    pub(crate) key: StoredKey,
}

/// A rank key with the internal user id: the exact place of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredKey {
    /// Score, larger is better.
    pub(crate) rank_key: i64,
    /// Breaks ties, larger is better.
    pub(crate) tie_key: i64,
    /// Internal user id. Between otherwise equal keys the lower id is better.
    pub(crate) internal_id: i64,
}

/// Some players, such as a player and the player's friends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlayerGroup {
    /// Internal id of the player around whom a page may lie.
    pub(crate) owner: i64,
    /// Internal ids of all players of the group, the owner included.
    pub(crate) user_ids: Vec<i64>,
}

/// Part of the ranking of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalPart {
    /// From this place among the group, from 1.
    From(i64),
    After(StoredKey),
    /// The owner, with the limit on each side.
    Around,
}

impl LocalPart {
    /// Returns the parameters of the statements that read a part: place, key and owner.
    pub(crate) fn parameters(self, group: &PlayerGroup) -> (i64, Option<StoredKey>, Option<i64>) {
        match self {
            Self::From(from) => (from, None, None),
            Self::After(key) => (1, Some(key), None),
            Self::Around => (1, None, Some(group.owner)),
        }
    }
}

/// A row of a group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LocalRow {
    /// Place among the group, from 1, never shared.
    pub(crate) place: u64,
    pub(crate) local_rank: u64,
    /// The row in the whole ranking.
    #[serde(flatten)]
    pub(crate) stored: StoredRow,
}

/// Part of the ranking of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalRows {
    /// Players of the group in the ranking.
    pub(crate) players: u64,
    /// Rows, best first.
    pub(crate) rows: Vec<LocalRow>,
}

/// A player's row, with the number of players whose rank is worse.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredPlayer {
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Players with a worse rank.
    pub(crate) worse: u64,
}

/// Result of a look-up of a player.
pub(crate) struct StoredStanding {
    pub(crate) user_exists: bool,
    /// The player's row; `None` without an entry.
    pub(crate) player: Option<StoredPlayer>,
    /// The player and the neighbours, best first.
    pub(crate) rows: Vec<Row>,
}

impl StoredStanding {
    /// Returns the result for a player without an entry.
    pub(crate) fn none(user_exists: bool) -> Self {
        Self { user_exists, player: None, rows: Vec::new() }
    }
}

/// The row of `sql/queries/standing*.sql`.
struct StandingRow {
    external_id: Option<String>,
    name: Option<String>,
    avatar: Option<String>,
    score: Option<i64>,
    reached_at: Option<DateTime<Utc>>,
    tiebreak: Option<i64>,
    place: Option<i32>,
    counted: Option<Vec<i64>>,
    from_below: Option<bool>,
    beside_equals: Option<Vec<i64>>,
    is_shared: bool,
    epoch: Option<String>,
    batches: Option<Vec<i64>>,
    is_behind: bool,
    layout: i32,
    revisions: Option<Vec<i64>>,
    counts: Option<Vec<i64>>,
    neighbours: Option<Json<Vec<StoredNeighbour>>>,
}

/// A player found by bucket; see `centile_store.bucket_standings`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BucketStanding {
    /// The caller's own id of the player; `None` if the user does not exist.
    pub(crate) external_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) avatar: Option<String>,
    /// Score; `None` without an entry. The same holds for the fields below.
    pub(crate) score: Option<i64>,
    pub(crate) reached_at: Option<DateTime<Utc>>,
    pub(crate) tiebreak: Option<i64>,
    /// Place of the player's bucket, from 1 for the lowest.
    pub(crate) place: Option<i32>,
    /// Rows of the bucket counted from one of its ends; see `centile_store.count_in_bucket`.
    pub(crate) counted: Option<Vec<i64>>,
    /// Whether `counted` starts at the lower end.
    pub(crate) from_below: Option<bool>,
    /// Players with a better score, and players with the same score or a better one.
    ///
    /// Set where ranks are shared and players with the same score may be in other buckets.
    pub(crate) beside_equals: Option<Vec<i64>>,
    /// Whether players with the same score share a rank.
    pub(crate) is_shared: bool,
    /// The neighbours, best first, if requested.
    pub(crate) neighbours: Vec<StoredNeighbour>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredNeighbour {
    /// Places below the player; negative above.
    pub(crate) step: i64,
    /// Step of the first player of the same rank, if among the returned neighbours.
    pub(crate) first_equal: Option<i64>,
    /// Players with a better score, if `first_equal` is absent.
    pub(crate) better: Option<u64>,
    /// The caller's own id of the neighbour.
    pub(crate) user_id: String,
    pub(crate) user_name: String,
    pub(crate) avatar: Option<String>,
    pub(crate) score: i64,
    pub(crate) reached_at: Option<DateTime<Utc>>,
    pub(crate) tiebreak: Option<i64>,
}

/// A player looked up in one snapshot.
pub(crate) struct StandingAt {
    /// The state, without the number of players.
    pub(crate) state: RankingState,
    /// Whether batches of the board were not applied yet.
    pub(crate) is_behind: bool,
    /// The version of the bucket counts.
    pub(crate) counts_version: CountsVersion,
    /// Players of each bucket; `None` when the caller knows this version of them.
    pub(crate) counts: Option<Vec<i64>>,
    pub(crate) standing: BucketStanding,
}

/// The top and some players of a ranking, in one state.
pub(crate) struct LiveRows {
    pub(crate) state: RankingState,
    /// The first players.
    pub(crate) rows: Vec<StoredRow>,
    /// Players of each bucket; empty when no player was requested.
    pub(crate) counts: Vec<i64>,
    /// One for each requested user, in that order.
    pub(crate) standings: Vec<BucketStanding>,
}

impl Reader {
    /// Returns the state of a ranking or an archive.
    pub(crate) async fn state(&self, resolved: &ResolvedPeriod, source: PeriodSource) -> Result<RankingState> {
        let state: Result<(RankingState, ())> = read!(&self.readers, resolved, source, |row| (),
            "sql/queries/ranking_state.sql"; "sql/queries/archive_state.sql");
        state.map(|(state, ())| state)
    }

    /// Returns whether the selector still means a ranking.
    pub(crate) async fn is_current(&self, resolved: &ResolvedPeriod, ranking: RankingRef) -> Result<bool> {
        let query = sqlx::query_scalar!(
            r#"SELECT EXISTS (
                   SELECT FROM centile_store.periods p WHERE p.id = $1 AND p.ranking_id = $2
                   AND statement_timestamp() >= coalesce($3::timestamptz, '-infinity') AND statement_timestamp() < coalesce($4::timestamptz, 'infinity')) AS "is_current!""#,
            ranking.period_id,
            ranking.ranking_id.0,
            resolved.valid_from,
            resolved.valid_until
        );
        Ok(query.fetch_one(&self.readers).await?)
    }

    /// Returns the state of an archive. Reads no row of the archive.
    pub(crate) async fn archive_state(&self, resolved: &ResolvedPeriod, archive: ArchiveRef) -> Result<RankingState> {
        let row = sqlx::query_file!(
            "sql/queries/archive_state.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            resolved.valid_from,
            resolved.valid_until
        )
        .fetch_optional(&self.readers)
        .await?
        .ok_or(Error::Replaced)?;
        Ok(RankingState::stored(row.epoch, StateOf::Archive(archive), row.players, row.revision))
    }

    /// Returns the bytes of an archive's frozen top.
    pub(crate) async fn frozen_top(&self, resolved: &ResolvedPeriod, archive: ArchiveRef) -> Result<Vec<u8>> {
        let frozen_top = sqlx::query_file_scalar!(
            "sql/queries/archive_top.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            resolved.valid_from,
            resolved.valid_until
        )
        .fetch_optional(&self.readers)
        .await?;
        frozen_top.ok_or(Error::Replaced)
    }

    /// Returns the page that starts at a position.
    pub(crate) async fn page(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
        from: i64,
        limit: i32,
    ) -> Result<(RankingState, Vec<StoredRow>)> {
        read!(&self.readers, resolved, source, |row| row.rows.0,
            "sql/queries/page.sql", from, limit; "sql/queries/archive_page.sql", from, limit)
    }

    /// Returns the page below a key, which may come from the ranking before the period was closed.
    pub(crate) async fn page_after(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
        key: StoredKey,
        limit: i32,
    ) -> Result<(RankingState, Vec<StoredRow>)> {
        let StoredKey { rank_key, tie_key, internal_id } = key;
        read!(&self.readers, resolved, source, |row| row.rows.0,
            "sql/queries/page_after.sql", rank_key, tie_key, -internal_id, limit;
            "sql/queries/archive_page_after.sql", rank_key, tie_key, internal_id, limit)
    }

    /// Returns a player of an archive with the neighbours.
    pub(crate) async fn archive_standing(
        &self,
        resolved: &ResolvedPeriod,
        archive: ArchiveRef,
        user_id: &str,
        around: i32,
    ) -> Result<(RankingState, StoredStanding)> {
        let rows = sqlx::query_file!(
            "sql/queries/archive_standing.sql",
            archive.board,
            archive.period_id,
            archive.revision,
            resolved.valid_from,
            resolved.valid_until,
            user_id,
            around
        )
        .fetch_optional(&self.readers)
        .await;
        let row = rows.map_err(unless_dropped)?.ok_or(Error::Replaced)?;
        let standing = StoredStanding {
            user_exists: row.user_exists,
            player: row.player.map(|Json(player)| player),
            rows: row.rows.0.into_iter().map(|stored| stored.row).collect(),
        };
        Ok((RankingState::stored(row.epoch, StateOf::Archive(archive), row.players, row.revision), standing))
    }

    /// Returns the standing of a player of a ranking with `around` neighbours on each side.
    pub(crate) async fn standing(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        user_id: &str,
        around: i32,
        known: Option<&CountsVersion>,
    ) -> Result<StandingAt> {
        let (layout, revisions) = (known.map(|known| known.layout), known.map(|known| known.revisions.as_slice()));
        let row = if around == 0 {
            let query = sqlx::query_file_as!(
                StandingRow,
                "sql/queries/standing.sql",
                ranking.board,
                ranking.period_id,
                ranking.ranking_id.0,
                resolved.valid_from,
                resolved.valid_until,
                user_id,
                layout,
                revisions,
            );
            query.fetch_optional(&self.readers).await?
        } else {
            let query = sqlx::query_file_as!(
                StandingRow,
                "sql/queries/standing_around.sql",
                ranking.board,
                ranking.period_id,
                ranking.ranking_id.0,
                resolved.valid_from,
                resolved.valid_until,
                user_id,
                layout,
                revisions,
                around,
            );
            query.fetch_optional(&self.readers).await?
        };
        let row = row.ok_or(Error::Replaced)?;
        let (Some(epoch), Some(batches), Some(revisions)) = (row.epoch, row.batches, row.revisions) else {
            return Err(Error::Internal("a standing without a version".to_owned()));
        };
        let standing = BucketStanding {
            external_id: row.external_id,
            name: row.name,
            avatar: row.avatar,
            score: row.score,
            reached_at: row.reached_at,
            tiebreak: row.tiebreak,
            place: row.place,
            counted: row.counted,
            from_below: row.from_below,
            beside_equals: row.beside_equals,
            is_shared: row.is_shared,
            neighbours: row.neighbours.map(|Json(neighbours)| neighbours).unwrap_or_default(),
        };
        // The bucket counts give the number of players. The names come from the statement's own snapshot
        // and are not cached.
        let of = StateOf::Batches(Batch::from_numbers(batches));
        let state = RankingState::stored(epoch.clone(), of, 0, 0);
        let counts_version = CountsVersion { epoch, layout: row.layout, revisions };
        Ok(StandingAt { state, is_behind: row.is_behind, counts_version, counts: row.counts, standing })
    }

    /// Returns the first `limit` players of a ranking, and the chosen players with `around` neighbours
    /// on each side, of one state.
    pub(crate) async fn live(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        limit: i32,
        user_ids: &[String],
        around: i32,
    ) -> Result<LiveRows> {
        let query = sqlx::query_file!(
            "sql/queries/live.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id.0,
            resolved.valid_from,
            resolved.valid_until,
            limit,
            user_ids,
            around
        );
        let row = query.fetch_all(&self.readers).await?.pop().ok_or(Error::Replaced)?;
        let of = StateOf::Batches(Batch::from_numbers(row.batches));
        Ok(LiveRows {
            rows: row.rows.0,
            counts: row.counts.unwrap_or_default(),
            standings: row.standings.0,
            state: RankingState::stored(row.epoch, of, row.players, row.revision),
        })
    }

    /// Returns the chosen players, best first.
    pub(crate) async fn chosen(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
        user_ids: &[String],
    ) -> Result<(RankingState, Vec<Row>)> {
        let public = |rows: Vec<StoredPlayer>| rows.into_iter().map(|player| player.row).collect();
        read!(&self.readers, resolved, source, |row| public(row.rows.0),
            "sql/queries/chosen.sql", user_ids; "sql/queries/archive_chosen.sql", user_ids)
    }

    /// Returns a part of the ranking of a group.
    pub(crate) async fn local(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
        group: &PlayerGroup,
        part: LocalPart,
        limit: i32,
    ) -> Result<(RankingState, LocalRows)> {
        let (from, key, around) = part.parameters(group);
        let (rank_key, tie_key) = (key.map(|key| key.rank_key), key.map(|key| key.tie_key));
        let (user_ids, user_key) = (group.user_ids.as_slice(), key.map(|key| -key.internal_id));
        let rows = |players: i64, rows| LocalRows { players: players.unsigned_abs(), rows };
        read!(&self.readers, resolved, source, |row| rows(row.local_players, row.rows.0),
            "sql/queries/local.sql", user_ids, from, rank_key, tie_key, user_key, around, limit;
            "sql/queries/archive_local.sql", user_ids, from, rank_key, tie_key, user_key, around, limit)
    }

    /// Returns the rank that a new player with this score would have.
    pub(crate) async fn newcomer(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
        score: i64,
    ) -> Result<(RankingState, u64)> {
        read!(&self.readers, resolved, source, |row| row.rank.unsigned_abs(),
            "sql/queries/newcomer.sql", score; "sql/queries/archive_newcomer.sql", score)
    }

    pub(crate) async fn distribution(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
    ) -> Result<(RankingState, (Vec<(u8, i64)>, Vec<Bar>))> {
        read!(&self.readers, resolved, source, |row| (row.percentiles.0, row.histogram.0),
            "sql/queries/distribution.sql"; "sql/queries/archive_distribution.sql")
    }

    /// Returns the players of each of these tiers or, in an archive, of each tier of the period.
    pub(crate) async fn tiers(
        &self,
        resolved: &ResolvedPeriod,
        source: PeriodSource,
        tiers: &Tiers,
    ) -> Result<(RankingState, Vec<TierCount>)> {
        let tiers: Vec<String> = tiers.iter().map(ToString::to_string).collect();
        read!(&self.readers, resolved, source, |row| row.tiers.0,
            "sql/queries/tiers.sql", &tiers; "sql/queries/archive_tiers.sql")
    }
}
