//! Reads a followed ranking in one state, if the state has changed.

use std::collections::HashMap;

use crate::{
    Error, Result,
    delivery::live::Interests,
    model::{
        board::Board,
        name::Named as _,
        period::{Period, PeriodSelector},
        rank::{Header, Row, Standing},
        segment::Segment,
    },
    ranking::{
        Open, Rankings, frozen, metadata,
        period::{self, Resolved},
        read,
    },
    store::{
        archive::ArchiveState,
        period::{ArchiveRef, PeriodSource, ResolvedPeriod},
        rank::RankingState,
    },
};

/// Neighbours read on each side of a chosen player: more than are shown, to find more overtakings.
const AROUND: u32 = 5;

/// A state of a ranking, as far as its subscribers follow it.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) header: Header,
    /// Epoch of the database.
    pub(crate) epoch: String,
    /// Identifies the state.
    pub(crate) tag: String,
    /// Profile revision of the names.
    pub(crate) revision: i64,
    /// The first players.
    pub(crate) rows: Vec<Row>,
    /// Requested number of first players.
    pub(crate) limit: u32,
    /// Chosen players by their ids; `None` for those without a score.
    pub(crate) standings: HashMap<String, Option<Standing>>,
}

impl Shown {
    /// Returns whether this is the state of that tag, with everything that subscribers want.
    fn is(&self, tag: &str, interests: &Interests) -> bool {
        self.tag == tag
            && interests.limit() <= self.limit
            && interests.users.keys().all(|user| self.standings.contains_key(user.as_str()))
    }

    /// Adds metadata to all rows.
    pub(super) async fn add_metadata(&mut self, rankings: &Rankings, board: &Board) -> Result<()> {
        let mut rows: Vec<&mut Row> = self.rows.iter_mut().collect();
        for Standing { player, above, below, .. } in self.standings.values_mut().flatten() {
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
pub(crate) async fn read(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    interests: &Interests,
    last: Option<&Shown>,
) -> Result<Option<Shown>> {
    let is_known = &|tag: &str| last.is_some_and(|last| last.is(tag, interests));
    // `Some(None)`: unchanged. `None`: replaced meanwhile.
    period::read_current(rankings, board, selector, |resolved| async move {
        match resolved {
            Resolved::Empty(period, state) => {
                Ok(Some((!is_known(&tag(board, &period, 0, &state))).then(|| empty(board, &period, &state, interests))))
            }
            Resolved::Players(resolved, PeriodSource::Live(ranking)) => {
                let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: true };
                let Some(state) = open.state().await? else { return Ok(None) };
                if is_known(&tag(board, &resolved.period, ranking.ranking_id, &state)) {
                    return Ok(Some(None));
                }
                Ok(of_ranking(&open, interests).await?.map(Some))
            }
            Resolved::Players(resolved, PeriodSource::Archive(archive)) => {
                let Some((state, size)) = rankings.store.archive_state(&resolved, archive).await? else {
                    return Ok(None);
                };
                if is_known(&archive_tag(&resolved.period, &state)) {
                    return Ok(Some(None));
                }
                let found =
                    of_archive(rankings, board, selector, (&resolved, archive), (&state, size), interests, last)
                        .await?;
                Ok(found.map(Some))
            }
        }
    })
    .await
}

/// Identifies a state, and the order, names and tiers that it shows.
fn tag(board: &Board, period: &Period, ranking_id: i64, state: &RankingState) -> String {
    let (name, kind, tiers) = (period.name(), period.state.name(), board.tiers.digest());
    let rules = [board.order.name(), board.ties.name()].join(".");
    let segment = period.segment.as_ref().map(Segment::digest).unwrap_or_default();
    format!("{name}{segment}.{rules}.{kind}.{ranking_id}.{}.{}{tiers}", state.version.text(), state.revision)
}

fn archive_tag(period: &Period, state: &ArchiveState) -> String {
    format!("{}.{}.{}", period.name(), period.state.name(), state.etag())
}

/// Returns the state of a period without scores.
fn empty(board: &Board, period: &Period, state: &RankingState, interests: &Interests) -> Shown {
    Shown {
        header: read::header(period, state),
        epoch: state.version.epoch.clone(),
        tag: tag(board, period, 0, state),
        revision: state.revision,
        rows: Vec::new(),
        limit: interests.limit(),
        standings: interests.user_ids().into_iter().map(|id| (id, None)).collect(),
    }
}

/// Reads an open ranking in one state; returns `None` when the selector no longer means it.
async fn of_ranking(open: &Open<'_>, interests: &Interests) -> Result<Option<Shown>> {
    let (limit, user_ids) = (interests.limit(), interests.user_ids());
    let Some(found) = open.live(limit, &user_ids, AROUND).await? else { return Ok(None) };
    let header = read::header(&open.resolved.period, &found.state);
    let standings = found.standings.into_iter().map(|standing| read::standing_of(header.clone(), standing));
    Ok(Some(Shown {
        epoch: found.state.version.epoch.clone(),
        tag: tag(open.board, &open.resolved.period, open.ranking.ranking_id, &found.state),
        revision: found.state.revision,
        rows: found.rows,
        limit,
        standings: user_ids.into_iter().zip(standings).collect(),
        header,
    }))
}

/// Reads an archive: the frozen top as far as it goes, and one statement per chosen player missing
/// in `last`.
///
/// Archives hardly ever change. Returns `None` when the selector no longer means this archive.
async fn of_archive(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    (resolved, archive): (&ResolvedPeriod, ArchiveRef),
    (state, size): (&ArchiveState, u32),
    interests: &Interests,
    last: Option<&Shown>,
) -> Result<Option<Shown>> {
    let (limit, tag) = (interests.limit(), archive_tag(&resolved.period, state));
    let Some(frozen) = frozen::frozen(rankings, resolved, state, size).await? else { return Ok(None) };
    let rows = if let Some(rows) = frozen.first(limit) {
        rows.to_vec()
    } else {
        let rows = i32::try_from(limit).unwrap_or(i32::MAX);
        let Some((_, rows)) = rankings.store.archive_page(resolved, archive, 1, rows).await? else { return Ok(None) };
        rows
    };
    let header = read::archive_header(resolved, state);
    let known = last.filter(|last| last.tag == tag).map(|last| &last.standings);
    let mut standings = HashMap::with_capacity(interests.users.len());
    for user in interests.users.keys() {
        if let Some(standing) = known.and_then(|known| known.get(user.as_str())) {
            standings.insert(user.to_string(), standing.clone());
            continue;
        }
        let standing = match read::standing(rankings, board, selector, user, AROUND).await {
            Ok(standing) if standing.header.version != header.version => return Ok(None),
            Ok(standing) => Some(standing),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        standings.insert(user.to_string(), standing);
    }
    // If the archive was refreshed or dropped meanwhile, a player who was not found may be in the
    // new one.
    let is_still_that = rankings.store.archive_state(resolved, archive).await?.is_some_and(|(now, _)| now == *state);
    if !is_still_that {
        return Ok(None);
    }
    let rows = rows.into_iter().map(|stored| stored.row).collect();
    Ok(Some(Shown { header, epoch: state.epoch.clone(), tag, revision: state.revision, rows, limit, standings }))
}
