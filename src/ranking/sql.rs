//! Reads of open periods by SQL that combine several results. A rank is a count inside one bucket
//! plus the cached counts of the better buckets.

use crate::{
    Error, Result,
    model::{board::Board, rank::Row},
    ranking::{counts, rankings::Rankings},
    store::{
        period::{RankingRef, ResolvedPeriod},
        rank::{BucketStanding, RankingState, StoredPlayer, StoredRow, StoredStanding},
    },
    telemetry::{self, ReadSource},
};

/// The first players and chosen players in one state.
pub(crate) struct LiveState {
    /// State that all rows belong to.
    pub(crate) state: RankingState,
    /// The first players.
    pub(crate) rows: Vec<StoredRow>,
    /// The chosen players, in the order of the request.
    pub(crate) standings: Vec<StoredStanding>,
}

/// Returns a player with up to `around` players above and below.
pub(super) async fn standing(
    rankings: &Rankings,
    board: &Board,
    resolved: &ResolvedPeriod,
    ranking: RankingRef,
    user_id: &str,
    around: i32,
) -> Result<(RankingState, StoredStanding)> {
    let cached = counts::cached_counts(rankings, board, resolved, ranking).await;
    let mut version = cached.as_ref().map(|(cached, _)| &cached.version);
    let mut found = rankings.primary.standing(resolved, ranking, user_id, around, version).await?;
    if found.counts.is_none() && version != Some(&found.counts_version) {
        // The cached counts are of another epoch, which the statement does not compare.
        version = None;
        found = rankings.primary.standing(resolved, ranking, user_id, around, version).await?;
    }
    if found.is_behind {
        let reader = rankings.applied(ranking).await?;
        found = reader.standing(resolved, ranking, user_id, around, version).await?;
    }
    let counts = match (found.counts, cached) {
        (Some(counts), _) => {
            telemetry::count_read("counts", ReadSource::Database);
            counts::store_counts(rankings, board, resolved, ranking, found.counts_version, counts)
        }
        (None, Some((cached, from))) if cached.version == found.counts_version => {
            telemetry::count_read("counts", from);
            cached
        }
        // The epoch has changed between two statements.
        (None, _) => return Err(Error::Replaced),
    };
    let state = RankingState { players: player_count(&counts.counts), ..found.state };
    Ok((state, standing_of(board, resolved, found.standing, &counts.counts)?))
}

/// Returns the first `limit` players, and chosen players with up to `around` players above and
/// below, from one statement.
pub(super) async fn live(
    rankings: &Rankings,
    board: &Board,
    resolved: &ResolvedPeriod,
    ranking: RankingRef,
    limit: u32,
    user_ids: &[String],
    around: u32,
) -> Result<LiveState> {
    let (limit, around) = (i32::try_from(limit).unwrap_or(i32::MAX), i32::try_from(around).unwrap_or(i32::MAX));
    let reader = rankings.applied(ranking).await?;
    let found = reader.live(resolved, ranking, limit, user_ids, around).await?;
    let standings = found.standings.into_iter().map(|one| standing_of(board, resolved, one, &found.counts));
    Ok(LiveState { standings: standings.collect::<Result<_>>()?, state: found.state, rows: found.rows })
}

/// Returns the number of players in all buckets.
fn player_count(counts: &[i64]) -> u64 {
    counts.iter().sum::<i64>().unsigned_abs()
}

/// Builds a player's standing from a look-up and the bucket counts of the same state.
fn standing_of(
    board: &Board,
    resolved: &ResolvedPeriod,
    found: BucketStanding,
    counts: &[i64],
) -> Result<StoredStanding> {
    let user_exists = found.external_id.is_some();
    let Some(score) = found.score else {
        return Ok(StoredStanding::none(user_exists));
    };
    let inconsistent = || {
        Error::Internal(format!(
            "the bucket counts of {} {} are inconsistent; run `centile verify` to find the damage",
            board.slug,
            resolved.period.full_name()
        ))
    };
    // Count the players above, from the bucket counts and the rows of the player's own bucket.
    let above = PlayersAbove::from_standing(&found, counts).ok_or_else(inconsistent)?;
    let position = above.own + 1;
    let own = Row {
        position,
        rank: above.better + 1,
        user_id: found.external_id.unwrap_or_default(),
        user_name: found.name.unwrap_or_default(),
        avatar: found.avatar,
        score,
        reached_at: found.reached_at,
        tiebreak: found.tiebreak,
        metadata: None,
        profile: None,
    };
    // Derive the neighbours' positions and ranks from the player's.
    let mut rows = vec![own.clone()];
    for near in found.neighbours {
        let at = |step: i64| position.checked_add_signed(step);
        let rank = near.first_equal.and_then(at).or(near.better.map(|better| better + 1));
        rows.push(Row {
            position: at(near.step).ok_or_else(inconsistent)?,
            rank: rank.ok_or_else(inconsistent)?,
            user_id: near.user_id,
            user_name: near.user_name,
            avatar: near.avatar,
            score: near.score,
            reached_at: near.reached_at,
            tiebreak: near.tiebreak,
            metadata: None,
            profile: None,
        });
    }
    rows.sort_unstable_by_key(|row| row.position);
    let worse = player_count(counts).saturating_sub(above.no_worse);
    Ok(StoredStanding { user_exists, player: Some(StoredPlayer { row: own, worse }), rows })
}

/// Numbers of players above a player.
struct PlayersAbove {
    /// Players with a better key.
    own: u64,
    /// Players with a better rank.
    better: u64,
    /// Players with the same or a better rank, the player included.
    no_worse: u64,
}

impl PlayersAbove {
    /// Adds the counts inside the player's bucket to those of the better buckets, all of the same
    /// state.
    fn from_standing(found: &BucketStanding, counts: &[i64]) -> Option<Self> {
        let place = usize::try_from(found.place?).ok()?;
        let better_buckets = counts.get(place..)?.iter().sum::<i64>();
        let players = *counts.get(place.checked_sub(1)?)?;
        let [better, own, no_worse] = found.counted.as_deref()? else { return None };
        let from_below = found.from_below?;
        let above = |rows: i64| {
            let in_bucket = if from_below { players - rows } else { rows };
            u64::try_from(better_buckets + in_bucket).ok()
        };
        let own = above(*own)?;
        match found.beside_equals.as_deref() {
            _ if !found.is_shared => Some(Self { own, better: own, no_worse: own + 1 }),
            None => Some(Self { own, better: above(*better)?, no_worse: above(*no_worse)? }),
            Some([better, no_worse]) => {
                Some(Self { own, better: u64::try_from(*better).ok()?, no_worse: u64::try_from(*no_worse).ok()? })
            }
            Some(_) => None,
        }
    }
}
