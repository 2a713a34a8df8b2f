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
        period::PeriodSelector,
        rank::{Chosen, Distribution, Header, Page, PageStart, PlayerStanding, Row, TierCounts},
        user::UserId,
    },
    ranking::{
        cursor::Cursor,
        index_registry::{IndexRequest, IndexView},
        period::{self, PeriodResolution},
        rankings::Rankings,
        source::{self, RankSource},
    },
    store::{
        export::ExportSnapshot,
        period::PeriodSource,
        rank::{StoredRow, StoredStanding},
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
    let cursor = &cursor;
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, rows) = match cursor {
            Some(cursor) => source.page_after(cursor.key, limit).await?,
            None => source.page(from, limit).await?,
        };
        Ok(page_of(board, source.header(&state), rows))
    })
    .await
}

/// Returns the first `limit` players, and a player with up to `around` players above and below, at one
/// version. The player is `None` without an entry.
pub(crate) async fn top_and_standing(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    user_id: &UserId,
    around: u32,
) -> Result<(Page, Option<PlayerStanding>)> {
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, rows, found) = source.top_and_standing(limit, user_id, around).await?;
        let header = source.header(&state);
        Ok((page_of(board, header.clone(), rows), standing_of(header, found)))
    })
    .await
}

/// Builds a page. It has a next page unless its last row is the last player's.
pub(crate) fn page_of(board: &Board, header: Header, rows: Vec<StoredRow>) -> Page {
    let next = rows
        .last()
        .filter(|last| last.row.position < header.players)
        .map(|last| Cursor::text(board, &header.period, last.key));
    Page { header, rows: rows.into_iter().map(|stored| stored.row).collect(), next }
}

/// Opens a snapshot of the period that `selector` means; no snapshot for a period without scores.
pub(crate) async fn export_snapshot(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
) -> Result<(Header, Option<ExportSnapshot>)> {
    period::read_current(rankings, board, selector, |resolved| async move {
        let (resolved, source) = match resolved {
            PeriodResolution::Empty(resolved, state) => return Ok((state.header(&resolved), None)),
            PeriodResolution::Players(resolved, source) => (resolved, source),
        };
        let reader = match source {
            PeriodSource::Live(ranking) => rankings.applied(ranking).await?,
            PeriodSource::Archive(_) => &rankings.reader,
        };
        let (snapshot, state) = reader.export_snapshot(&resolved, source).await?;
        Ok((state.header(&resolved), Some(snapshot)))
    })
    .await
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
) -> Result<PlayerStanding> {
    let around = i32::try_from(around).unwrap_or(i32::MAX);
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, found) = source.standing(user_id, around).await?;
        let user_exists = found.user_exists;
        standing_of(source.header(&state), found).ok_or_else(|| no_entry(user_id, selector, user_exists))
    })
    .await
}

/// Boards that are read at the same time when no index answers.
const BOARDS_AT_ONCE: usize = 8;

/// Returns a player's standing in the period of each selector, on its board, without neighbours.
///
/// One round updates the indexes in memory of these boards. Each other board is read separately, up
/// to eight at a time. Returns [`Error::NotFound`] if there are boards, but the player does not exist.
pub(crate) async fn standings(
    rankings: &Rankings,
    boards: &[Board],
    selectors: &[PeriodSelector],
    user_id: &UserId,
) -> Result<Vec<Result<PlayerStanding>>> {
    let wanted: Vec<_> = boards.iter().zip(selectors).collect();
    let resolved = period::resolve_all(rankings, &wanted).await?;
    let mut found = standings_in_indexes(rankings, boards, &resolved, user_id).await?;
    let is_known = found.iter().any(|found| matches!(found, Some(Ok(Some(_)))));
    // A caller who may read none of the boards does not learn who exists.
    if !is_known
        && let Some(selector) = selectors.first()
        && rankings.reader.user(user_id.as_str()).await?.is_none()
    {
        return Err(no_entry(user_id, selector, false));
    }
    // `None`: the player has no entry.
    let others = wanted.iter().zip(resolved).enumerate().filter(|(index, _)| found[*index].is_none());
    let others = others.map(|(index, ((board, selector), resolved))| async move {
        let standing = match resolved {
            Ok(PeriodResolution::Players(..)) => standing(rankings, board, selector, user_id, 0).await.map(Some),
            Ok(PeriodResolution::Empty(..)) => Ok(None),
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
    let found: Vec<Result<Option<PlayerStanding>>> = found.into_iter().flatten().collect();
    let standing = |(found, selector): (Result<Option<PlayerStanding>>, _)| {
        found?.ok_or_else(|| no_entry(user_id, selector, true))
    };
    Ok(found.into_iter().zip(selectors).map(standing).collect())
}

/// Returns the player's standing on each board with an index in memory, after one round of these
/// boards. An inner `None` means that the player has no entry.
async fn standings_in_indexes(
    rankings: &Rankings,
    boards: &[Board],
    resolved: &[Result<PeriodResolution>],
    user_id: &UserId,
) -> Result<Vec<Option<Result<Option<PlayerStanding>>>>> {
    // Run a round of the boards whose period is open.
    let wanted: Vec<Option<IndexRequest<'_>>> = boards
        .iter()
        .zip(resolved)
        .map(|(board, resolved)| match resolved {
            Ok(PeriodResolution::Players(resolved, PeriodSource::Live(ranking))) => {
                Some((board.slug.as_str(), &**resolved, *ranking))
            }
            _ => None,
        })
        .collect();
    let views = rankings.indexes.index_views(&wanted).await;
    let nothing = || boards.iter().map(|_| None).collect();
    // All views are of one round, so they share the epoch of the directory.
    let Some(view) = views.iter().flatten().next() else { return Ok(nothing()) };
    // Look up the player once for all boards.
    let found = async {
        let Some(user) = view.find(&[user_id.to_string()]).await?.pop().flatten() else { return Ok(None) };
        let profile = view.profiles(&[user]).await?.pop();
        // The player may have been erased meanwhile.
        let profile = profile.filter(|profile| profile.external_id == user_id.as_str()).ok_or(Error::Replaced)?;
        Ok(Some((user, profile)))
    };
    let (user, profile) = match found.await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(views.iter().map(|view| view.as_ref().map(|_| Ok(None))).collect()),
        Err(Error::Replaced) => return Ok(nothing()),
        Err(error) => return Err(error),
    };
    // Find the player in each index.
    let standing = |(board, (resolved, view)): (&Board, (&Result<PeriodResolution>, &Option<IndexView>))| {
        let (Ok(PeriodResolution::Players(resolved, _)), Some(view)) = (resolved, view) else { return None };
        let source = RankSource::from_index(rankings, board, Arc::clone(resolved), view.clone());
        let (state, found) = source.standing_in(view, user, &profile).ok()?;
        Some(Ok(found.and_then(|found| standing_of(source.header(&state), found))))
    };
    Ok(boards.iter().zip(resolved.iter().zip(&views)).map(standing).collect())
}

/// Separates a player from the neighbours. `None` if the player has no entry.
pub(crate) fn standing_of(header: Header, found: StoredStanding) -> Option<PlayerStanding> {
    let player = found.player?;
    let others = found.rows.into_iter().filter(|row| row.position != player.row.position);
    let (above, below) = others.partition(|row| row.position < player.row.position);
    let percentile = percentile(player.worse, header.players);
    Some(PlayerStanding { header, player: player.row, percentile, above, below })
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
    let (wanted, chosen_of) = (&wanted, &chosen_of);
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, rows) = source.chosen(wanted).await?;
        Ok(chosen_of(source.header(&state), rows))
    })
    .await
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
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, rank) = source.newcomer(score).await?;
        Ok((source.header(&state), rank))
    })
    .await
}

/// Returns the percentiles and the histogram of a period's scores.
pub async fn distribution(rankings: &Rankings, board: &Board, selector: &PeriodSelector) -> Result<Distribution> {
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, (percentiles, histogram)) = source.distribution().await?;
        Ok(Distribution { header: source.header(&state), percentiles, histogram })
    })
    .await
}

/// Returns the number of players in each tier.
pub(crate) async fn tiers(rankings: &Rankings, board: &Board, selector: &PeriodSelector) -> Result<TierCounts> {
    source::with_source(rankings, board, selector, false, |source| async move {
        let (state, counts) = source.tiers().await?;
        Ok(TierCounts { header: source.header(&state), counts })
    })
    .await
}
