//! A player's cohort in the current period of a league.
//!
//! SQL computes ranks and moves. This instance uses the answer again for all members, as long as the rank
//! index has the same key for each of them.

use std::slice;

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
        caches::KeptCohort,
        index_registry::key_of,
        period::{self, PeriodResolution},
        rankings::Rankings,
        source::RankSource,
    },
    store::{index::StoredProfile, period::PeriodSource, rank::StoredKey},
};

/// Returns a player's place in the league of a board, in the current period.
///
/// [`crate::Error::NotFound`] without a league or player.
pub(crate) async fn current(rankings: &Rankings, board: &Board, user: &UserId) -> Result<LeagueState> {
    if let Some(kept) = rankings.cohorts.get(board.id, user).filter(|kept| kept.revision == board.structure_revision) {
        if let Ok(Some(state)) = confirmed(rankings, board, user, &kept.state).await {
            return Ok(state);
        }
        rankings.cohorts.forget(board.id, user);
    }
    let state = rankings.reader.league_state(board, Some(user), None, None).await?;
    let is_complete = state.rows.len() == usize::try_from(state.size).unwrap_or_default()
        && state.rows.iter().all(|row| row.key.is_some())
        && state.period.state == "open";
    if let (true, Some(cohort_id)) = (is_complete, state.cohort_id) {
        let kept = KeptCohort { state: state.clone(), revision: board.structure_revision };
        rankings.cohorts.insert(board.id, user, cohort_id, kept);
    }
    Ok(state)
}

/// Returns the place from an earlier answer, if a rank index is ready and confirms it.
async fn confirmed(
    rankings: &Rankings,
    board: &Board,
    user: &UserId,
    kept: &LeagueState,
) -> Result<Option<LeagueState>> {
    let selector: PeriodSelector = kept.period.name.parse()?;
    let current = PeriodSelector::Current(selector.kind());
    let PeriodResolution::Players(resolved, PeriodSource::Live(ranking)) =
        period::resolve(rankings, board, &current).await?
    else {
        return Ok(None);
    };
    if resolved.period.name() != kept.period.name {
        return Ok(None);
    }
    let wanted = Some((board.slug.as_str(), &*resolved, ranking));
    let views = rankings.indexes.index_views(slice::from_ref(&wanted)).await;
    let Some(view) = views.into_iter().flatten().next() else {
        rankings.periods.forget(board.id, &current);
        return Ok(None);
    };
    let source = RankSource::from_index(rankings, board, resolved, view);
    let keys = kept.rows.iter().filter_map(|row| row.key);
    let keys = keys.map(|(rank_key, tie_key, internal_id)| key_of(StoredKey { rank_key, tie_key, internal_id }));
    let confirmed = source.profiles_if(keys.collect()).await?;
    Ok(confirmed.and_then(|(profiles, read_at)| renewed(user, kept, profiles, read_at)))
}

/// Returns the place with the present names and the time left. `None` if another player has the id now.
fn renewed(
    user: &UserId,
    kept: &LeagueState,
    profiles: Vec<StoredProfile>,
    read_at: DateTime<Utc>,
) -> Option<LeagueState> {
    if !profiles.iter().any(|profile| profile.external_id == user.as_str()) {
        return None;
    }
    let row = |(row, profile): (&LeagueRow, StoredProfile)| LeagueRow {
        user_id: profile.external_id,
        name: profile.name,
        avatar_url: profile.avatar,
        ..*row
    };
    let mut state = LeagueState { rows: kept.rows.iter().zip(profiles).map(row).collect(), ..kept.clone() };
    state.period.seconds_left = ((kept.period.ends_at - read_at).num_milliseconds().max(0) + 999) / 1_000;
    Some(state)
}
