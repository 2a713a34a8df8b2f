//! SQL that reads rankings. Each call is one statement, with one snapshot, or on a cluster one per
//! server: its answer is exact for the version it names.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        key,
        rank::{AnsweredBy, Bar, Row},
        tier::{TierCount, Tiers},
    },
    store::{
        Store,
        period::{RankingRef, ResolvedPeriod},
    },
};

/// A state of a board, as the database numbers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    /// Epoch of the database.
    pub(crate) epoch: String,
    /// Number of the last batch of each lane.
    pub(crate) batches: Vec<i64>,
}

impl Version {
    /// Returns the opaque public form, which is safe inside an `ETag` and a cache key.
    ///
    /// It holds a digest of the lanes' batches, so that its length does not grow with the lanes.
    pub(crate) fn text(&self) -> String {
        format!("{}.{}", self.epoch, digest(&self.batches))
    }
}

/// Identifies the bucket counts of a ranking: equal values mean equal counts. A batch changes it only
/// if it changes the number of players in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountsVersion {
    /// Epoch of the database.
    pub(crate) epoch: String,
    /// Number of the ranking's layout.
    pub(crate) layout: i32,
    /// Batch that last changed the counts, by lane.
    pub(crate) revisions: Vec<i64>,
}

impl CountsVersion {
    /// Returns the form that is part of a cache key.
    pub(crate) fn text(&self) -> String {
        format!("{}.{}.{}", self.epoch, self.layout, digest(&self.revisions))
    }
}

/// Returns the first eight bytes of the SHA-256 of the numbers, in hexadecimal.
fn digest(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    key::hex(&Sha256::digest(numbers.join("-"))[..8])
}

/// State that every statement about a ranking returns with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankingState {
    /// The state that the answer is exact for.
    pub(crate) version: Version,
    /// Players in the ranking.
    pub(crate) players: u64,
    /// Profile revision of the names in the answer.
    pub(crate) revision: i64,
    /// The source of the answer.
    pub(crate) answered_by: AnsweredBy,
}

/// Builds the state from the columns that all statements share.
macro_rules! state_of {
    ($row:expr) => {
        RankingState {
            version: Version { epoch: $row.epoch, batches: $row.batches },
            players: $row.players.unsigned_abs(),
            revision: $row.revision,
            answered_by: AnsweredBy::Sql,
        }
    };
}

/// A row of a ranking with its key, from which a cursor is made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredRow {
    /// The public part.
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Its key.
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
pub(crate) struct Group {
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
    /// Below a key.
    After(StoredKey),
    /// The owner, with the limit on each side.
    Around,
}

impl LocalPart {
    /// Returns the parameters of the statements that read a part: place, key and owner.
    pub(crate) fn parameters(self, group: &Group) -> (i64, Option<StoredKey>, Option<i64>) {
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
    /// Rank among the group.
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
    /// The public part.
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Players with a worse rank.
    pub(crate) worse: u64,
}

/// Result of a look-up of a player.
pub(crate) struct StoredStanding {
    /// Whether the user exists.
    pub(crate) user_exists: bool,
    /// The player's row; `None` without an entry.
    pub(crate) player: Option<StoredPlayer>,
    /// The player and the neighbours, best first.
    pub(crate) rows: Vec<Row>,
}

/// The row of `sql/queries/standing*.sql`.
struct StandingRow {
    external_id: Option<String>,
    name: Option<String>,
    avatar: Option<String>,
    score: Option<i64>,
    reached_at: Option<DateTime<Utc>>,
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
    /// Name.
    pub(crate) name: Option<String>,
    /// URL of a picture.
    pub(crate) avatar: Option<String>,
    /// Score; `None` without an entry. The same holds for the fields below.
    pub(crate) score: Option<i64>,
    /// When it was reached.
    pub(crate) reached_at: Option<DateTime<Utc>>,
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

/// A player near another.
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
    /// Name.
    pub(crate) user_name: String,
    /// URL of a picture.
    pub(crate) avatar: Option<String>,
    /// Score.
    pub(crate) score: i64,
    /// When the score was reached.
    pub(crate) reached_at: DateTime<Utc>,
}

/// A player looked up in one snapshot.
pub(crate) struct StandingAt {
    /// The version that the standing is exact for.
    pub(crate) version: Version,
    /// Whether batches of the board were not applied yet.
    pub(crate) is_behind: bool,
    /// The version of the bucket counts.
    pub(crate) counts_version: CountsVersion,
    /// Players of each bucket; `None` when the caller knows this version of them.
    pub(crate) counts: Option<Vec<i64>>,
    /// The player.
    pub(crate) standing: BucketStanding,
}

/// The top and some players of a ranking, in one state.
pub(crate) struct LiveState {
    /// The state.
    pub(crate) state: RankingState,
    /// The first players.
    pub(crate) rows: Vec<Row>,
    /// Players of each bucket; empty when no player was requested.
    pub(crate) counts: Vec<i64>,
    /// One for each requested user, in that order.
    pub(crate) standings: Vec<BucketStanding>,
}

/// A statement about a ranking. Its first parameters check that the ranking is still the current one of
/// the period.
macro_rules! query_ranking {
    ($file:literal, $ranking:expr, $resolved:expr $(, $argument:expr)*) => {
        sqlx::query_file!(
            $file,
            $ranking.board,
            $ranking.period_id,
            $ranking.ranking_id,
            $resolved.valid_from,
            $resolved.valid_until,
            $($argument),*
        )
    };
}

impl Store {
    /// Returns the state of a ranking; `None` when the selector no longer means it.
    pub(crate) async fn ranking_state(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
    ) -> Result<Option<RankingState>> {
        let row =
            query_ranking!("sql/queries/ranking_state.sql", ranking, resolved).fetch_optional(&self.readers).await?;
        Ok(row.map(|row| state_of!(row)))
    }

    /// Returns the page that starts at a position.
    pub(crate) async fn page(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        from: i64,
        limit: i32,
    ) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        let query = query_ranking!("sql/queries/page.sql", ranking, resolved, from, limit);
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rows.0)))
    }

    /// Returns the page below a key.
    pub(crate) async fn page_after(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        key: StoredKey,
        limit: i32,
    ) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        let query = query_ranking!(
            "sql/queries/page_after.sql",
            ranking,
            resolved,
            key.rank_key,
            key.tie_key,
            -key.internal_id,
            limit
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rows.0)))
    }

    /// Returns the standing of a player with `around` neighbours on each side; `None` when the
    /// selector no longer means the ranking.
    pub(crate) async fn standing(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        user_id: &str,
        around: i32,
        known: Option<&CountsVersion>,
    ) -> Result<Option<StandingAt>> {
        let (layout, revisions) = (known.map(|known| known.layout), known.map(|known| known.revisions.as_slice()));
        let row = if around == 0 {
            let query = sqlx::query_file_as!(
                StandingRow,
                "sql/queries/standing.sql",
                ranking.board,
                ranking.period_id,
                ranking.ranking_id,
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
                ranking.ranking_id,
                resolved.valid_from,
                resolved.valid_until,
                user_id,
                layout,
                revisions,
                around,
            );
            query.fetch_optional(&self.readers).await?
        };
        let Some(row) = row else { return Ok(None) };
        let (Some(epoch), Some(batches), Some(revisions)) = (row.epoch, row.batches, row.revisions) else {
            return Err(Error::Internal("a standing without a version".to_owned()));
        };
        let standing = BucketStanding {
            external_id: row.external_id,
            name: row.name,
            avatar: row.avatar,
            score: row.score,
            reached_at: row.reached_at,
            place: row.place,
            counted: row.counted,
            from_below: row.from_below,
            beside_equals: row.beside_equals,
            is_shared: row.is_shared,
            neighbours: row.neighbours.map(|Json(neighbours)| neighbours).unwrap_or_default(),
        };
        let counts_version = CountsVersion { epoch: epoch.clone(), layout: row.layout, revisions };
        let version = Version { epoch, batches };
        Ok(Some(StandingAt { version, is_behind: row.is_behind, counts_version, counts: row.counts, standing }))
    }

    /// Returns the first `limit` players, and the chosen players with `around` neighbours on each
    /// side, of one state.
    ///
    /// Returns `None` when the selector no longer means the ranking.
    pub(crate) async fn live(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        limit: i32,
        user_ids: &[String],
        around: i32,
    ) -> Result<Option<LiveState>> {
        let query = query_ranking!("sql/queries/live.sql", ranking, resolved, limit, user_ids, around);
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| LiveState {
            rows: row.rows.0.into_iter().map(|stored| stored.row).collect(),
            counts: row.counts.unwrap_or_default(),
            standings: row.standings.0,
            state: state_of!(row),
        }))
    }

    /// Returns the version of a ranking's bucket counts; `None` when the ranking is gone.
    pub(crate) async fn counts_version(&self, ranking: RankingRef) -> Result<Option<CountsVersion>> {
        let row = sqlx::query!(
            r#"SELECT centile.epoch() AS "epoch!", g.layout,
                      centile_store.count_revisions(g.id, g.lanes) AS "revisions!"
               FROM centile_store.rankings g WHERE g.id = $1"#,
            ranking.ranking_id
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(row.map(|row| CountsVersion { epoch: row.epoch, layout: row.layout, revisions: row.revisions }))
    }

    /// Returns the chosen players, best first.
    pub(crate) async fn chosen(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        user_ids: &[String],
    ) -> Result<Option<(RankingState, Vec<Row>)>> {
        let query = query_ranking!("sql/queries/chosen.sql", ranking, resolved, user_ids);
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rows.0.into_iter().map(|player| player.row).collect())))
    }

    /// Returns a part of the ranking of a group.
    pub(crate) async fn local(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        group: &Group,
        part: LocalPart,
        limit: i32,
    ) -> Result<Option<(RankingState, LocalRows)>> {
        let (from, key, around) = part.parameters(group);
        let query = query_ranking!(
            "sql/queries/local.sql",
            ranking,
            resolved,
            group.user_ids.as_slice(),
            from,
            key.map(|key| key.rank_key),
            key.map(|key| key.tie_key),
            key.map(|key| -key.internal_id),
            around,
            limit
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), LocalRows { players: row.local_players.unsigned_abs(), rows: row.rows.0 })))
    }

    /// Returns the rank that a new player with this score would have.
    pub(crate) async fn newcomer(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        score: i64,
    ) -> Result<Option<(RankingState, u64)>> {
        let query = query_ranking!("sql/queries/newcomer.sql", ranking, resolved, score);
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rank.unsigned_abs())))
    }

    /// Returns percentiles and histogram.
    pub(crate) async fn distribution(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
    ) -> Result<Option<(RankingState, (Vec<(u8, i64)>, Vec<Bar>))>> {
        let row =
            query_ranking!("sql/queries/distribution.sql", ranking, resolved).fetch_optional(&self.readers).await?;
        Ok(row.map(|row| (state_of!(row), (row.percentiles.0, row.histogram.0))))
    }

    /// Returns the players of each of these tiers.
    pub(crate) async fn tiers(
        &self,
        resolved: &ResolvedPeriod,
        ranking: RankingRef,
        tiers: &Tiers,
    ) -> Result<Option<(RankingState, Vec<TierCount>)>> {
        let tiers: Vec<String> = tiers.iter().map(ToString::to_string).collect();
        let row =
            query_ranking!("sql/queries/tiers.sql", ranking, resolved, &tiers).fetch_optional(&self.readers).await?;
        Ok(row.map(|row| (state_of!(row), row.tiers.0)))
    }
}
