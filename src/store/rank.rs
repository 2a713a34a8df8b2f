//! Reading rankings. Each call is one statement: one snapshot, so that an answer is exact for the version it names.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use sqlx::types::Json;

use crate::{
    Error, Result,
    model::{
        key,
        rank::{AnsweredBy, Bar, Row},
    },
    store::{
        Store,
        period::{MeantPeriod, RankingRef},
    },
};

/// A state of a board, as the database numbers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    /// This life of the database.
    pub(crate) epoch: String,
    /// Layout number of the ranking; 0 without one.
    pub(crate) layout: i32,
    /// Number of the last batch of each lane.
    pub(crate) batches: Vec<i64>,
}

impl Version {
    /// Its outside form: opaque, without the characters that an `ETag` or a cache key could trip over.
    /// The lanes' batches stand in it as the first eight bytes of their SHA-256, so that its length
    /// does not grow with the lanes.
    pub(crate) fn text(&self) -> String {
        let batches: Vec<String> = self.batches.iter().map(ToString::to_string).collect();
        let digest = Sha256::digest(batches.join("-"));
        format!("{}.{}.{}", self.epoch, self.layout, key::hex(&digest[..8]))
    }
}

/// What every statement about a ranking says beside its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankingState {
    /// The state that the answer is exact for.
    pub(crate) version: Version,
    /// Players in the ranking.
    pub(crate) players: u64,
    /// Profile revision: which names the answer shows.
    pub(crate) revision: i64,
    /// What answered.
    pub(crate) answered_by: AnsweredBy,
}

/// The state columns that the statements share.
macro_rules! state_of {
    ($row:expr) => {
        RankingState {
            version: Version { epoch: $row.epoch, layout: $row.layout, batches: $row.batches },
            players: $row.players.unsigned_abs(),
            revision: $row.revision,
            answered_by: AnsweredBy::Sql,
        }
    };
}

/// A row of a ranking with its key, from which a cursor is made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredRow {
    /// What callers see of it.
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Its place in the ranking.
    #[serde(flatten)]
    pub(crate) key: StoredKey,
}

/// A rank key: with the internal user id, the place of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredKey {
    /// Score, larger is better.
    pub(crate) rank_key: i64,
    /// What breaks ties.
    pub(crate) tie_key: i64,
    /// Internal user id; the lower of two otherwise equal ones is above.
    pub(crate) internal_id: i64,
}

/// One player's row, with the number of players whose rank is worse.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredPlayer {
    /// What callers see of it.
    #[serde(flatten)]
    pub(crate) row: Row,
    /// Players with a worse rank.
    pub(crate) worse: u64,
}

/// What was found of a player.
pub(crate) struct StoredStanding {
    /// Whether there is such a user at all.
    pub(crate) user_exists: bool,
    /// The player, unless without an entry.
    pub(crate) player: Option<StoredPlayer>,
    /// The player among the neighbours, best first.
    pub(crate) rows: Vec<Row>,
}

/// What is asked of a ranking about players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// The ranking.
    pub(crate) ranking: RankingRef,
    /// When the selector began to mean it; always, if absent.
    pub(crate) meant_from: Option<DateTime<Utc>>,
    /// When it ceases to mean it; never, if absent.
    pub(crate) meant_until: Option<DateTime<Utc>>,
    /// Neighbours above, and as many below.
    pub(crate) around: i32,
}

/// A row of `sql/queries/standings*.sql`; what is the same for all stands in the first.
struct StandingRow {
    n: i64,
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
    layout: i32,
    batches: Option<Vec<i64>>,
    counts: Option<Vec<i64>>,
    neighbours: Option<Json<Vec<StoredNeighbour>>>,
}

/// A player looked up in the player's bucket; see `centile_store.bucket_standings`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BucketStanding {
    /// The player's id, if there is such a user.
    pub(crate) external_id: Option<String>,
    /// Name.
    pub(crate) name: Option<String>,
    /// Address of a picture.
    pub(crate) avatar: Option<String>,
    /// Score, if there is an entry; so it is with all that follows.
    pub(crate) score: Option<i64>,
    /// When it was reached.
    pub(crate) reached_at: Option<DateTime<Utc>>,
    /// Place of the player's bucket, from 1 for the lowest.
    pub(crate) place: Option<i32>,
    /// Rows of the bucket from one of its ends: see `centile_store.count_in_bucket`.
    pub(crate) counted: Option<Vec<i64>>,
    /// Whether they are counted from the lower end.
    pub(crate) from_below: Option<bool>,
    /// Where ranks are shared and players with the same score may stand in other buckets: players of
    /// the ranking with a better score, and with the same score or a better one.
    pub(crate) beside_equals: Option<Vec<i64>>,
    /// Whether players with the same score share a rank.
    pub(crate) is_shared: bool,
    /// The players around, best first, where any are asked for.
    pub(crate) neighbours: Vec<StoredNeighbour>,
}

/// A player near another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredNeighbour {
    /// Places below that player; negative above.
    pub(crate) step: i64,
    /// Step of the first player of the same rank, where that one is among these.
    pub(crate) first_equal: Option<i64>,
    /// Players with a better score, where not.
    pub(crate) better: Option<u64>,
    /// The caller's id of the player.
    pub(crate) user_id: String,
    /// Name.
    pub(crate) user_name: String,
    /// Address of a picture.
    pub(crate) avatar: Option<String>,
    /// Score.
    pub(crate) score: i64,
    /// When the score was reached.
    pub(crate) reached_at: DateTime<Utc>,
}

/// Players looked up in one snapshot.
pub(crate) struct BucketStandings {
    /// The state that they are exact for.
    pub(crate) version: Version,
    /// Players of each bucket, when the version is not the one the caller knows them of.
    pub(crate) counts: Option<Vec<i64>>,
    /// One for each user that was asked for, in that order.
    pub(crate) standings: Vec<BucketStanding>,
}

/// A top and players of one state.
pub(crate) struct LiveState {
    /// The state.
    pub(crate) state: RankingState,
    /// The first players.
    pub(crate) rows: Vec<Row>,
    /// Players of each bucket; none when no player was asked for.
    pub(crate) counts: Vec<i64>,
    /// One for each user that was asked for, in that order.
    pub(crate) standings: Vec<BucketStanding>,
}

impl Store {
    /// State of a ranking; `None` when it is no longer the one that was meant.
    pub(crate) async fn ranking_state(&self, meant: &MeantPeriod, ranking: RankingRef) -> Result<Option<RankingState>> {
        let row = sqlx::query_file!(
            "sql/queries/ranking_state.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(row.map(|row| state_of!(row)))
    }

    /// A page from a position.
    pub(crate) async fn page(
        &self,
        meant: &MeantPeriod,
        ranking: RankingRef,
        from: i64,
        limit: i32,
    ) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        let query = sqlx::query_file!(
            "sql/queries/page.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
            from,
            limit,
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rows.0)))
    }

    /// The page below a key.
    pub(crate) async fn page_after(
        &self,
        meant: &MeantPeriod,
        ranking: RankingRef,
        key: StoredKey,
        limit: i32,
    ) -> Result<Option<(RankingState, Vec<StoredRow>)>> {
        let query = sqlx::query_file!(
            "sql/queries/page_after.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
            key.rank_key,
            key.tie_key,
            -key.internal_id,
            limit,
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rows.0)))
    }

    /// Standings of players; `None` when the ranking is no longer the one that was meant.
    pub(crate) async fn standings(
        &self,
        question: &Question,
        user_ids: &[String],
        known: Option<&Version>,
    ) -> Result<Option<BucketStandings>> {
        let Question { ranking, meant_from, meant_until, around } = *question;
        let (layout, batches) = (known.map(|version| version.layout), known.map(|version| version.batches.as_slice()));
        let mut rows = if around == 0 {
            let query = sqlx::query_file_as!(
                StandingRow,
                "sql/queries/standings.sql",
                ranking.board,
                ranking.period_id,
                ranking.ranking_id,
                meant_from,
                meant_until,
                user_ids,
                layout,
                batches,
            );
            query.fetch_all(&self.readers).await?
        } else {
            let query = sqlx::query_file_as!(
                StandingRow,
                "sql/queries/standings_around.sql",
                ranking.board,
                ranking.period_id,
                ranking.ranking_id,
                meant_from,
                meant_until,
                user_ids,
                layout,
                batches,
                around,
            );
            query.fetch_all(&self.readers).await?
        };
        rows.sort_unstable_by_key(|row| row.n);
        let Some(first) = rows.first_mut() else { return Ok(None) };
        let (Some(epoch), Some(batches)) = (first.epoch.take(), first.batches.take()) else {
            return Err(Error::Internal("standings without a version".to_owned()));
        };
        let (version, counts) = (Version { epoch, layout: first.layout, batches }, first.counts.take());
        let standings = rows
            .into_iter()
            .map(|row| BucketStanding {
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
            })
            .collect();
        Ok(Some(BucketStandings { version, counts, standings }))
    }

    /// The first `limit` players, and chosen ones with `around` players above and below, of one state; `None` when the ranking is no
    /// longer the one that was meant.
    pub(crate) async fn live(
        &self,
        meant: &MeantPeriod,
        ranking: RankingRef,
        limit: i32,
        user_ids: &[String],
        around: i32,
    ) -> Result<Option<LiveState>> {
        let query = sqlx::query_file!(
            "sql/queries/live.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
            limit,
            user_ids,
            around,
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| LiveState {
            rows: row.rows.0.into_iter().map(|stored| stored.row).collect(),
            counts: row.counts.unwrap_or_default(),
            standings: row.standings.0,
            state: state_of!(row),
        }))
    }

    /// The version of a ranking alone; `None` when it is gone.
    pub(crate) async fn ranking_version(&self, ranking: RankingRef) -> Result<Option<Version>> {
        let row = sqlx::query!(
            r#"SELECT centile.epoch() AS "epoch!", g.layout,
                      centile_store.lane_batches(g.board_id, g.lanes) AS "batches!"
               FROM centile_store.rankings g WHERE g.id = $1"#,
            ranking.ranking_id
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(row.map(|row| Version { epoch: row.epoch, layout: row.layout, batches: row.batches }))
    }

    /// Chosen players, best first.
    pub(crate) async fn chosen(
        &self,
        meant: &MeantPeriod,
        ranking: RankingRef,
        user_ids: &[String],
    ) -> Result<Option<(RankingState, Vec<Row>)>> {
        let query = sqlx::query_file!(
            "sql/queries/chosen.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
            user_ids,
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rows.0.into_iter().map(|player| player.row).collect())))
    }

    /// The rank of a newcomer with this score.
    pub(crate) async fn newcomer(
        &self,
        meant: &MeantPeriod,
        ranking: RankingRef,
        score: i64,
    ) -> Result<Option<(RankingState, u64)>> {
        let query = sqlx::query_file!(
            "sql/queries/newcomer.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
            score,
        );
        let row = query.fetch_all(&self.readers).await?.pop();
        Ok(row.map(|row| (state_of!(row), row.rank.unsigned_abs())))
    }

    /// Percentiles and histogram.
    pub(crate) async fn distribution(
        &self,
        meant: &MeantPeriod,
        ranking: RankingRef,
    ) -> Result<Option<(RankingState, (Vec<(u8, i64)>, Vec<Bar>))>> {
        let row = sqlx::query_file!(
            "sql/queries/distribution.sql",
            ranking.board,
            ranking.period_id,
            ranking.ranking_id,
            meant.meant_from,
            meant.meant_until,
        )
        .fetch_optional(&self.readers)
        .await?;
        Ok(row.map(|row| (state_of!(row), (row.percentiles.0, row.histogram.0))))
    }
}
