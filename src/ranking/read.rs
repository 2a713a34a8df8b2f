//! Reads of a ranking or of a closed period's archive: pages, standings, chosen players and
//! distributions.
//!
//! Every answer is exact for the version it names.

use std::{collections::HashSet, sync::Arc};

use futures::{StreamExt as _, stream};

use crate::{
    Error, Resource, Result,
    model::{
        board::Board,
        period::{Period, PeriodSelector},
        rank::{AnsweredBy, Chosen, Distribution, Header, Page, PageStart, Row, Standing, TierCounts},
        tier::{Tier, TierCount},
        user::UserId,
    },
    ranking::{
        Open, Rankings,
        cursor::Cursor,
        indexes::{IndexView, Wanted},
        period::{self, Resolved},
    },
    store::{
        archive::ArchiveState,
        export::{Snapshot, State},
        period::{PeriodSource, ResolvedPeriod},
        rank::{RankingState, StoredRow, StoredStanding},
    },
};

/// Returns a page. Its cost does not depend on its depth.
pub async fn page(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    start: PageStart,
    limit: u32,
) -> Result<Page> {
    let cursor = match &start {
        PageStart::Cursor(text) => Some(Cursor::parse(text, board, selector)?),
        PageStart::Position(_) => None,
    };
    // The cursor names its period: a cursor for `week` stays in the week of the first page.
    let selector = cursor.as_ref().map_or(selector, |cursor| &cursor.selector);
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let from = match start {
        PageStart::Position(from) => i64::try_from(from).unwrap_or(i64::MAX),
        PageStart::Cursor(_) => 1,
    };
    let read = |resolved: Arc<ResolvedPeriod>, source| {
        let key = cursor.as_ref().map(|cursor| cursor.key);
        async move {
            let (store, period) = (&rankings.store, &resolved.period);
            let found = match (source, key) {
                (PeriodSource::Live(ranking), None) => {
                    Open { rankings, board, resolved: &resolved, ranking, is_shared: false }
                        .page(from, limit)
                        .await?
                        .map(|found| of_ranking(period, found))
                }
                (PeriodSource::Live(ranking), Some(key)) => {
                    Open { rankings, board, resolved: &resolved, ranking, is_shared: false }
                        .page_after(key, limit)
                        .await?
                        .map(|found| of_ranking(period, found))
                }
                (PeriodSource::Archive(archive), None) => {
                    store.archive_page(&resolved, archive, from, limit).await?.map(|found| of_archive(&resolved, found))
                }
                (PeriodSource::Archive(archive), Some(key)) => store
                    .archive_page_after(&resolved, archive, key, limit)
                    .await?
                    .map(|found| of_archive(&resolved, found)),
            };
            Ok(found.map(|(header, rows)| page_of(board, header, rows)))
        }
    };
    let empty = |period: Period, state: RankingState| Ok(page_of(board, header(&period, &state), Vec::new()));
    on_period(rankings, board, selector, read, empty).await
}

/// Builds a page. It has a next page unless its last row is the last player's.
pub(crate) fn page_of(board: &Board, header: Header, rows: Vec<StoredRow>) -> Page {
    let next = rows
        .last()
        .filter(|last| last.row.position < header.players)
        .map(|last| Cursor::text(board, &header.period, last.key));
    Page { header, rows: rows.into_iter().map(|stored| stored.row).collect(), next }
}

/// Returns the header of an answer from a ranking.
pub(crate) fn header(period: &Period, state: &RankingState) -> Header {
    Header {
        period: period.clone(),
        version: state.version.text(),
        players: state.players,
        etag: None,
        answered_by: state.answered_by,
        combined: None,
        tiers: None,
    }
}

/// Returns the header of an answer from an archive.
pub(crate) fn archive_header(resolved: &ResolvedPeriod, state: &ArchiveState) -> Header {
    Header {
        period: resolved.period.clone(),
        version: state.version(),
        players: state.players,
        etag: Some(state.etag()),
        answered_by: AnsweredBy::Sql,
        combined: resolved.combined.clone(),
        tiers: resolved.tiers.clone(),
    }
}

/// Adds the header to what was read from a ranking.
pub(super) fn of_ranking<T>(period: &Period, (state, found): (RankingState, T)) -> (Header, T) {
    (header(period, &state), found)
}

/// Adds the header to what was read from an archive.
pub(super) fn of_archive<T>(resolved: &ResolvedPeriod, (state, found): (ArchiveState, T)) -> (Header, T) {
    (archive_header(resolved, &state), found)
}

/// Reads from the ranking or archive of the period that `selector` means. `empty` answers for a
/// period without scores.
pub(super) async fn on_period<T, F>(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    read: impl Fn(Arc<ResolvedPeriod>, PeriodSource) -> F,
    empty: impl Fn(Period, RankingState) -> Result<T>,
) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let (read, empty) = (&read, &empty);
    period::read_current(rankings, board, selector, |resolved| async move {
        match resolved {
            Resolved::Empty(period, state) => empty(period, state).map(Some),
            Resolved::Players(resolved, source) => read(resolved, source).await,
        }
    })
    .await
}

/// Opens a snapshot of the period that `selector` means; no snapshot for a period without scores.
pub(crate) async fn snapshot(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<(Header, Option<Snapshot>)> {
    let read = |resolved: Arc<ResolvedPeriod>, source| async move {
        let store = match source {
            PeriodSource::Live(ranking) => {
                if ranking.has_bucket_rows {
                    rankings.indexes.apply(board.id).await?;
                }
                &rankings.primary
            }
            PeriodSource::Archive(_) => &rankings.store,
        };
        let found = store.snapshot(&resolved, source).await?;
        Ok(found.map(|(snapshot, state)| {
            let header = match state {
                State::Live(state) => header(&resolved.period, &state),
                State::Archive(state) => archive_header(&resolved, &state),
            };
            (header, Some(snapshot))
        }))
    };
    on_period(rankings, board, selector, read, |period, state| Ok((header(&period, &state), None))).await
}

/// Returns whether a player has a standing in a period.
pub async fn has_standing(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    user_id: &UserId,
) -> Result<bool> {
    match standing(rankings, board, selector, user_id, 0).await {
        Err(Error::NotFound { .. }) => Ok(false),
        standing => standing.map(|_| true),
    }
}

/// Returns a player's standing with up to `around` players above and below.
///
/// [`Error::NotFound`] if the player has no entry.
pub async fn standing(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    user_id: &UserId,
    around: u32,
) -> Result<Standing> {
    let around = i32::try_from(around).unwrap_or(i32::MAX);
    let read = |resolved: Arc<ResolvedPeriod>, source| async move {
        let (user, period) = (user_id.as_str(), &resolved.period);
        let found = match source {
            PeriodSource::Live(ranking) => {
                let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: false };
                open.standing(user, around).await?.map(|found| of_ranking(period, found))
            }
            PeriodSource::Archive(archive) => {
                let found = rankings.store.archive_standing(&resolved, archive, user, around).await?;
                found.map(|found| of_archive(&resolved, found))
            }
        };
        let Some((header, found)) = found else { return Ok(None) };
        let user_exists = found.user_exists;
        let standing = standing_of(header, found).ok_or_else(|| no_entry(user_id, selector, user_exists))?;
        Ok(Some(Some(standing)))
    };
    match on_period(rankings, board, selector, read, |_, _| Ok(None)).await? {
        Some(standing) => Ok(standing),
        None => Err(no_entry(user_id, selector, rankings.store.user(user_id.as_str()).await?.is_some())),
    }
}

/// Boards that are read at the same time when no index answers.
const BOARDS_AT_ONCE: usize = 8;

/// Returns a player's standing on each board, without neighbours.
///
/// One round updates the indexes in memory of these boards. Each other board is read separately, up
/// to eight at a time. Returns [`Error::NotFound`] if there are boards, but the player does not exist.
pub(crate) async fn standings(
    rankings: &Rankings,
    boards: &[Board],
    selector: &PeriodSelector,
    user_id: &UserId,
) -> Result<Vec<Result<Standing>>> {
    let resolved = period::resolve_all(rankings, boards, selector).await?;
    let mut found = standings_in_indexes(rankings, boards, &resolved, user_id).await?;
    let is_known = found.iter().any(|found| matches!(found, Some(Ok(Some(_)))));
    // A caller who may read none of the boards does not learn who exists.
    if !is_known && !boards.is_empty() && rankings.store.user(user_id.as_str()).await?.is_none() {
        return Err(no_entry(user_id, selector, false));
    }
    // `None`: the player has no entry.
    let others = boards.iter().zip(resolved).enumerate().filter(|(index, _)| found[*index].is_none());
    let others = others.map(|(index, (board, resolved))| async move {
        let standing = match resolved {
            Ok(Resolved::Players(..)) => standing(rankings, board, selector, user_id, 0).await.map(Some),
            Ok(Resolved::Empty(..)) => Ok(None),
            Err(error) => Err(error),
        };
        (index, standing)
    });
    let others: Vec<_> = stream::iter(others).buffer_unordered(BOARDS_AT_ONCE).collect().await;
    for (index, standing) in others {
        found[index] = Some(match standing {
            Err(Error::NotFound { what: Resource::Score | Resource::User, .. }) => Ok(None),
            other => other,
        });
    }
    let found: Vec<Result<Option<Standing>>> = found.into_iter().flatten().collect();
    Ok(found.into_iter().map(|found| found?.ok_or_else(|| no_entry(user_id, selector, true))).collect())
}

/// Returns the player's standing on each board with an index in memory, after one round of these
/// boards. An inner `None` means that the player has no entry.
async fn standings_in_indexes(
    rankings: &Rankings,
    boards: &[Board],
    resolved: &[Result<Resolved>],
    user_id: &UserId,
) -> Result<Vec<Option<Result<Option<Standing>>>>> {
    let wanted: Vec<Option<Wanted<'_>>> = boards
        .iter()
        .zip(resolved)
        .map(|(board, resolved)| match resolved {
            Ok(Resolved::Players(resolved, PeriodSource::Live(ranking))) => {
                Some((board.slug.as_str(), &**resolved, *ranking))
            }
            _ => None,
        })
        .collect();
    let views = rankings.indexes.access_all(&wanted).await;
    let nothing = || boards.iter().map(|_| None).collect();
    // All views are of one round, so they share the epoch of the directory.
    let Some(view) = views.iter().flatten().next() else { return Ok(nothing()) };
    let Some(mut users) = view.find(&[user_id.to_string()]).await? else { return Ok(nothing()) };
    let Some(user) = users.pop().flatten() else {
        return Ok(views.iter().map(|view| view.as_ref().map(|_| Ok(None))).collect());
    };
    let profile = view.profiles(&[user]).await?.and_then(|mut profiles| profiles.pop());
    // The player may have been erased meanwhile.
    let Some(profile) = profile.filter(|profile| profile.external_id == user_id.as_str()) else { return Ok(nothing()) };
    let standing = |(board, (wanted, view)): (&Board, (&Option<Wanted<'_>>, &Option<IndexView>))| {
        let ((_, resolved, ranking), view) = ((*wanted)?, view.as_ref()?);
        let open = Open { rankings, board, resolved, ranking, is_shared: false };
        let (state, found) = open.standing_in(view, user, &profile)?;
        Some(Ok(found.and_then(|found| standing_of(header(&resolved.period, &state), found))))
    };
    Ok(boards.iter().zip(wanted.iter().zip(&views)).map(standing).collect())
}

/// Separates a player from the neighbours. `None` if the player has no entry.
pub(crate) fn standing_of(header: Header, found: StoredStanding) -> Option<Standing> {
    let player = found.player?;
    let others = found.rows.into_iter().filter(|row| row.position != player.row.position);
    let (above, below) = others.partition(|row| row.position < player.row.position);
    let percentile = percentile(player.worse, header.players);
    Some(Standing { header, player: player.row, percentile, above, below })
}

/// Returns 100 × players strictly worse ÷ max(players − 1, 1).
pub(crate) fn percentile(worse: u64, players: u64) -> f64 {
    100.0 * worse as f64 / players.saturating_sub(1).max(1) as f64
}

/// Returns the error for a player without an entry in a period.
pub(super) fn no_entry(user_id: &UserId, selector: &PeriodSelector, user_exists: bool) -> Error {
    Error::NotFound {
        what: if user_exists { Resource::Score } else { Resource::User },
        name: user_id.to_string(),
        hint: user_exists.then(|| format!("the player has no score in {selector}")),
    }
}

/// Returns the standings of chosen players, such as friends.
pub async fn chosen(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    user_ids: &[UserId],
) -> Result<Chosen> {
    let wanted: Vec<String> = user_ids.iter().map(ToString::to_string).collect();
    let chosen_of = |header: Header, rows: Vec<Row>| {
        let mut local_ranks: Vec<u64> = Vec::with_capacity(rows.len());
        for (n, row) in rows.iter().enumerate() {
            // Rows come best first, so players with equal ranks are neighbours.
            let is_equal = n > 0 && rows[n - 1].rank == row.rank;
            local_ranks.push(if is_equal { local_ranks[n - 1] } else { n as u64 + 1 });
        }
        let found: HashSet<&str> = rows.iter().map(|row| row.user_id.as_str()).collect();
        let missing = wanted.iter().filter(|id| !found.contains(id.as_str())).cloned().collect();
        Chosen { header, rows, local_ranks, missing }
    };
    let read = |resolved: Arc<ResolvedPeriod>, source| {
        let (store, wanted, chosen_of) = (&rankings.store, &wanted, &chosen_of);
        async move {
            let period = &resolved.period;
            let found = match source {
                PeriodSource::Live(ranking) => {
                    let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: false };
                    open.chosen(wanted).await?.map(|found| of_ranking(period, found))
                }
                PeriodSource::Archive(archive) => {
                    store.archive_chosen(&resolved, archive, wanted).await?.map(|found| of_archive(&resolved, found))
                }
            };
            Ok(found.map(|(header, rows)| chosen_of(header, rows)))
        }
    };
    on_period(rankings, board, selector, read, |period, state| Ok(chosen_of(header(&period, &state), Vec::new()))).await
}

/// Returns the rank that a new player with this score would have now.
///
/// The player ranks behind equals, except on `shared` boards.
pub async fn newcomer(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    score: i64,
) -> Result<(Header, u64)> {
    if score == i64::MIN {
        return Err(Error::invalid("score", "must be above the least 64-bit integer"));
    }
    let read = |resolved: Arc<ResolvedPeriod>, source| async move {
        let period = &resolved.period;
        Ok(match source {
            PeriodSource::Live(ranking) => {
                let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: false };
                open.newcomer(score).await?.map(|found| of_ranking(period, found))
            }
            PeriodSource::Archive(archive) => rankings
                .store
                .archive_newcomer(&resolved, archive, score)
                .await?
                .map(|found| of_archive(&resolved, found)),
        })
    };
    on_period(rankings, board, selector, read, |period, state| Ok((header(&period, &state), 1))).await
}

/// Returns percentiles and histogram.
pub async fn distribution(rankings: &Rankings, board: &Board, selector: &PeriodSelector) -> Result<Distribution> {
    let read = |resolved: Arc<ResolvedPeriod>, source| async move {
        let (store, period) = (&rankings.store, &resolved.period);
        let found = match source {
            PeriodSource::Live(ranking) => {
                let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: false };
                open.distribution().await?.map(|found| of_ranking(period, found))
            }
            PeriodSource::Archive(archive) => {
                store.archive_distribution(&resolved, archive).await?.map(|found| of_archive(&resolved, found))
            }
        };
        Ok(found.map(|(header, (percentiles, histogram))| Distribution { header, percentiles, histogram }))
    };
    let empty = |period: Period, state: RankingState| {
        Ok(Distribution { header: header(&period, &state), percentiles: Vec::new(), histogram: Vec::new() })
    };
    on_period(rankings, board, selector, read, empty).await
}

/// Returns the players of each tier.
pub(crate) async fn tiers(rankings: &Rankings, board: &Board, selector: &PeriodSelector) -> Result<TierCounts> {
    let read = |resolved: Arc<ResolvedPeriod>, source| async move {
        let (store, period) = (&rankings.store, &resolved.period);
        let found = match source {
            PeriodSource::Live(ranking) => {
                let open = Open { rankings, board, resolved: &resolved, ranking, is_shared: false };
                open.tiers().await?.map(|found| of_ranking(period, found))
            }
            PeriodSource::Archive(archive) => {
                store.archive_tiers(&resolved, archive).await?.map(|found| of_archive(&resolved, found))
            }
        };
        Ok(found.map(|(header, counts)| TierCounts { header, counts }))
    };
    let empty = |period: Period, state: RankingState| {
        let none = |tier: &Tier| TierCount { tier: tier.name().to_owned(), rule: tier.rule().to_string(), players: 0 };
        Ok(TierCounts { header: header(&period, &state), counts: board.tiers.iter().map(none).collect() })
    };
    on_period(rankings, board, selector, read, empty).await
}
