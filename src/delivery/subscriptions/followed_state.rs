//! Reads a followed ranking in one state, if the state has changed.

use std::collections::HashMap;

use crate::{
    Error, Result,
    delivery::subscriptions::Interests,
    model::{
        board::Board,
        name::Named as _,
        period::PeriodSelector,
        rank::{Header, PlayerStanding, Row},
        segment::Segment,
    },
    ranking::{
        frozen, metadata,
        rankings::Rankings,
        read,
        source::{self, RankSource},
    },
    store::{
        period::{ArchiveRef, PeriodSource},
        rank::RankingState,
    },
};

/// Neighbours read on each side of a chosen player: more than are shown, to find more overtakings.
const AROUND: u32 = 5;

/// A state of a ranking, as far as its subscribers follow it.
#[derive(Debug, Clone)]
pub(crate) struct FollowedState {
    pub(crate) header: Header,
    pub(crate) epoch: String,
    pub(crate) tag: String,
    /// Profile revision of the names.
    pub(crate) revision: i64,
    /// The first players.
    pub(crate) rows: Vec<Row>,
    /// Requested number of first players.
    pub(crate) limit: u32,
    /// Chosen players by their ids; `None` for those without a score.
    pub(crate) standings: HashMap<String, Option<PlayerStanding>>,
}

impl FollowedState {
    /// Returns whether this is the state of that tag, with everything that subscribers want.
    fn is(&self, tag: &str, interests: &Interests) -> bool {
        self.tag == tag
            && interests.limit() <= self.limit
            && interests.users.keys().all(|user| self.standings.contains_key(user.as_str()))
    }

    pub(super) async fn add_metadata(&mut self, rankings: &Rankings, board: &Board) -> Result<()> {
        let mut rows: Vec<&mut Row> = self.rows.iter_mut().collect();
        for PlayerStanding { player, above, below, .. } in self.standings.values_mut().flatten() {
            rows.extend(above.iter_mut().chain([player]).chain(below));
        }
        metadata::add(rankings, board, &self.header, rows).await
    }
}

impl Interests {
    /// Returns the number of players of the longest top.
    fn limit(&self) -> u32 {
        self.limits.keys().next_back().copied().unwrap_or(1)
    }

    fn user_ids(&self) -> Vec<String> {
        self.users.keys().map(ToString::to_string).collect()
    }
}

/// Reads the period that `selector` means on a board; returns `None` when `last` is current and
/// complete.
pub(crate) async fn read_state(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    interests: &Interests,
    last: Option<&FollowedState>,
) -> Result<Option<FollowedState>> {
    let is_known = |tag: &str| last.is_some_and(|last| last.is(tag, interests));
    source::with_source(rankings, board, selector, true, |source| async move {
        if let Some(PeriodSource::Archive(archive)) = source.resolved.source {
            let state = rankings.reader.archive_state(&source.resolved, archive).await?;
            if is_known(&tag(&source, &state)) {
                return Ok(None);
            }
            return of_archive(&source, selector, archive, &state, interests, last).await.map(Some);
        }
        if is_known(&tag(&source, &source.state().await?)) {
            return Ok(None);
        }
        of_ranking(&source, interests).await.map(Some)
    })
    .await
}

/// Identifies a state, and the order, names and tiers that it shows.
fn tag(source: &RankSource<'_>, state: &RankingState) -> String {
    let (board, period) = (source.board, &source.resolved.period);
    let (name, kind) = (period.name(), period.state.name());
    if let Some(etag) = state.etag() {
        return format!("{name}.{kind}.{etag}");
    }
    let ranking_id = match source.resolved.source {
        Some(PeriodSource::Live(ranking)) => ranking.ranking_id.0,
        _ => 0,
    };
    let segment = period.segment.as_ref().map(Segment::digest).unwrap_or_default();
    let (version, tiers) = (state.version(), board.tiers.digest());
    format!("{name}{segment}.{}.{kind}.{ranking_id}.{version}.{}{tiers}", board.order_tag(), state.revision)
}

/// Reads an open ranking in one state.
async fn of_ranking(source: &RankSource<'_>, interests: &Interests) -> Result<FollowedState> {
    let (limit, user_ids) = (interests.limit(), interests.user_ids());
    let found = source.live(limit, &user_ids, AROUND).await?;
    let header = source.header(&found.state);
    let standings = found.standings.into_iter().map(|standing| read::standing_of(header.clone(), standing));
    Ok(FollowedState {
        tag: tag(source, &found.state),
        revision: found.state.revision,
        epoch: found.state.epoch,
        rows: found.rows.into_iter().map(|stored| stored.row).collect(),
        limit,
        standings: user_ids.into_iter().zip(standings).collect(),
        header,
    })
}

/// Reads an archive: the frozen top as far as it goes, and one statement per chosen player missing
/// in `last`. Archives hardly ever change.
async fn of_archive(
    source: &RankSource<'_>,
    selector: &PeriodSelector,
    archive: ArchiveRef,
    state: &RankingState,
    interests: &Interests,
    last: Option<&FollowedState>,
) -> Result<FollowedState> {
    let RankSource { rankings, board, resolved, .. } = source;
    let (limit, tag) = (interests.limit(), tag(source, state));
    let frozen = frozen::frozen(source, archive, state).await?;
    let rows = match frozen.first(limit) {
        Some(rows) => rows.to_vec(),
        None => source.page(1, i32::try_from(limit).unwrap_or(i32::MAX)).await?.1,
    };
    let header = source.header(state);
    let known = last.filter(|last| last.tag == tag).map(|last| &last.standings);
    let mut standings = HashMap::with_capacity(interests.users.len());
    for user in interests.users.keys() {
        if let Some(standing) = known.and_then(|known| known.get(user.as_str())) {
            standings.insert(user.to_string(), standing.clone());
            continue;
        }
        let standing = match read::standing(rankings, board, selector, user, AROUND).await {
            Ok(standing) if standing.header.version != header.version => return Err(Error::Replaced),
            Ok(standing) => Some(standing),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        standings.insert(user.to_string(), standing);
    }
    // If the archive was refreshed or dropped meanwhile, a player who was not found may be in the
    // new one.
    if rankings.reader.archive_state(resolved, archive).await? != *state {
        return Err(Error::Replaced);
    }
    let rows = rows.into_iter().map(|stored| stored.row).collect();
    Ok(FollowedState { header, epoch: state.epoch.clone(), tag, revision: state.revision, rows, limit, standings })
}
