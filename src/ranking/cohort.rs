//! A player's cohort in the current period of a league.
//!
//! SQL computes ranks and moves. This instance uses the answer again for all members, as long as the rank
//! index has the same key for each of them.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::{
    Result,
    model::{
        board::Board,
        league::{LeagueRow, LeagueState},
        period::PeriodSelector,
        user::UserId,
    },
    ranking::{
        index_registry::key_of,
        rankings::Rankings,
        source::{RankSource, with_source},
    },
    store::{index::StoredProfile, rank::StoredKey},
};

/// Places of players in leagues, for how many players.
const MAX_PLAYERS: u64 = 100_000;

/// Full cohorts in which each member has a standing, by board and player. The members of such a cohort
/// never change.
#[derive(Debug)]
pub(super) struct CohortCache(moka::sync::Cache<(i32, UserId), Arc<Known>>);

/// A cohort, and the revision of the board's structure before it was read. Changes of the league and
/// closings raise the revision.
#[derive(Debug)]
struct Known {
    state: LeagueState,
    revision: i64,
}

impl Default for CohortCache {
    fn default() -> Self {
        Self(moka::sync::Cache::new(MAX_PLAYERS))
    }
}

/// Returns a player's place in the league of a board, in the current period.
///
/// [`Error::NotFound`] without a league or player.
pub(crate) async fn current(rankings: &Rankings, board: &Board, user: &UserId) -> Result<LeagueState> {
    if let Some(state) = known(rankings, board, user).await {
        return Ok(state);
    }
    let state = rankings.reader.league_state(board, Some(user), None, None).await?;
    let is_complete = state.rows.len() == usize::try_from(state.size).unwrap_or_default()
        && state.rows.iter().all(|row| row.key.is_some())
        && state.period.state == "open";
    if is_complete {
        let known = Arc::new(Known { state: state.clone(), revision: board.structure_revision });
        for row in &state.rows {
            rankings.cohorts.0.insert((board.id, row.user_id.parse()?), Arc::clone(&known));
        }
    }
    Ok(state)
}

/// Returns the place from an earlier answer if it still holds.
async fn known(rankings: &Rankings, board: &Board, user: &UserId) -> Option<LeagueState> {
    let key = (board.id, user.clone());
    let known = rankings.cohorts.0.get(&key).filter(|known| known.revision == board.structure_revision)?;
    let period: PeriodSelector = known.state.period.name.parse().ok()?;
    let current = PeriodSelector::Current(period.kind());
    let of = &known.state;
    let rows = with_source(rankings, board, &current, false, |source| async move { rows(&source, of).await });
    let rows = rows.await.ok().flatten();
    if rows.is_none() {
        rankings.cohorts.0.invalidate(&key);
    }
    rows.map(|(rows, read_at)| {
        let left = (known.state.period.ends_at - read_at).as_seconds_f64().ceil().max(0.0);
        let mut state = LeagueState { rows, ..known.state.clone() };
        state.period.seconds_left = left as i64;
        state
    })
}

/// Returns the rows of a cohort with the present names, and the time of the round, unless the standing of a
/// member has changed.
async fn rows(source: &RankSource<'_>, of: &LeagueState) -> Result<Option<(Vec<LeagueRow>, DateTime<Utc>)>> {
    if source.resolved.period.name() != of.period.name {
        return Ok(None);
    }
    let keys = of.rows.iter().filter_map(|row| row.key);
    let keys = keys.map(|(rank_key, tie_key, internal_id)| StoredKey { rank_key, tie_key, internal_id });
    let Some((profiles, read_at)) = source.profiles_if(keys.map(key_of).collect()).await? else { return Ok(None) };
    let row = |(row, profile): (&LeagueRow, StoredProfile)| LeagueRow {
        user_id: profile.external_id,
        name: profile.name,
        avatar_url: profile.avatar,
        ..*row
    };
    Ok(Some((of.rows.iter().zip(profiles).map(row).collect(), read_at)))
}
