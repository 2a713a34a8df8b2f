//! Resolves selectors to periods by the database's clock, and caches the result.

use std::{collections::HashMap, sync::Arc};

use crate::{
    Code, Error, Resource, Result,
    model::{
        board::{Board, PeriodKind},
        name::Named as _,
        period::{Period, PeriodSelector, PeriodState},
        rank::AnsweredBy,
        rule::UNLISTED_KINDS,
        segment::Attribute,
    },
    ranking::rankings::Rankings,
    store::{
        period::{PeriodSource, ResolvedPeriod},
        rank::{RankingState, StateOf, Version},
    },
};

/// Returns a page of the opened periods of a board, newest first, and the cursor of the next page.
///
/// The page has up to `limit` periods, all of kind `only` if given, and begins after `cursor`.
pub async fn list_page(
    rankings: &Rankings,
    board: &Board,
    only: Option<PeriodKind>,
    limit: usize,
    cursor: Option<&str>,
) -> Result<(Vec<Period>, Option<String>)> {
    let refused = || Error::invalid("cursor", "is not the `next_cursor` of an earlier page");
    // A cursor is the name of the last period of a page. Periods are never deleted.
    let after = cursor.map(|name| match name.parse() {
        Ok(PeriodSelector::Labelled(kind, label)) => Ok((kind, label)),
        Ok(PeriodSelector::Current(PeriodKind::AllTime)) => {
            Ok((PeriodKind::AllTime, PeriodKind::AllTime.name().to_owned()))
        }
        _ => Err(refused()),
    });
    let after = after.transpose()?;
    let after = after.as_ref().map(|(kind, label)| (*kind, label.as_str()));
    let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut periods = rankings.reader.list_periods(board, only, after, one_more).await?;
    // A page with a cursor has at least one period, unless rolling windows were released meanwhile.
    if periods.is_empty() && after.is_some_and(|(kind, _)| kind != PeriodKind::Rolling) {
        return Err(refused());
    }
    let is_last = periods.len() <= limit;
    periods.truncate(limit);
    let next = periods.last().filter(|_| !is_last).map(Period::name);
    Ok((periods, next))
}

/// Returns the positions of these players in the newest snapshot of a board, for a response about the
/// period `selector`. A player who is not in it has none.
///
/// [`Error::Invalid`] for another period than `all_time`.
pub(crate) async fn positions_before(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    user_ids: impl Iterator<Item = &str>,
) -> Result<HashMap<String, u64>> {
    if *selector != PeriodSelector::default() {
        return Err(Error::invalid("moved", "is only for the period all_time, without a segment"));
    }
    let user_ids: Vec<String> = user_ids.map(ToOwned::to_owned).collect();
    rankings.reader.snapshot_positions(board.id, &user_ids).await
}

/// Returns the period that a selector means on a board.
///
/// A cached result may be outdated. Every statement and round checks that it still holds.
pub(crate) async fn resolve(rankings: &Rankings, board: &Board, selector: &PeriodSelector) -> Result<PeriodResolution> {
    if let Some(cached) = cached(rankings, board, selector) {
        return cached;
    }
    let found = rankings.reader.resolve_periods(&[(board, selector)]).await?.pop().flatten();
    cache_resolution(rankings, board, selector, found)
}

/// Returns the period that each selector means on its board, like [`resolve`]. One statement resolves
/// all that are not cached.
pub(crate) async fn resolve_all(
    rankings: &Rankings,
    wanted: &[(&Board, &PeriodSelector)],
) -> Result<Vec<Result<PeriodResolution>>> {
    let known: Vec<_> = wanted.iter().map(|(board, selector)| cached(rankings, board, selector)).collect();
    let unknown: Vec<_> = wanted.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(one, _)| *one).collect();
    let found = if unknown.is_empty() { Vec::new() } else { rankings.reader.resolve_periods(&unknown).await? };
    let mut found = found.into_iter();
    let resolved = wanted.iter().zip(known).map(|((board, selector), known)| {
        known.unwrap_or_else(|| cache_resolution(rankings, board, selector, found.next().flatten()))
    });
    Ok(resolved.collect())
}

/// Returns what a selector means on a board, if no statement is needed for that.
fn cached(rankings: &Rankings, board: &Board, selector: &PeriodSelector) -> Option<Result<PeriodResolution>> {
    if let Some(segment) = selector.segment().filter(|segment| !board.segments.contains(&segment.attribute)) {
        let attributes: Vec<&str> = board.segments.iter().map(Attribute::as_str).collect();
        let declared = if attributes.is_empty() {
            "no segments".to_owned()
        } else {
            format!("segments by {}", attributes.join(", "))
        };
        return Some(Err(Error::invalid(
            "segment",
            format!("board {} has no segments by {}; it has {declared}", board.slug, segment.attribute),
        )));
    }
    let kind = selector.kind();
    if !UNLISTED_KINDS.contains(&kind) && !board.periods.contains(&kind) {
        let kept: Vec<&str> = board.periods.iter().map(|kind| kind.name()).collect();
        return Some(Err(Error::NotFound {
            what: Resource::Period,
            name: selector.to_string(),
            hint: Some(format!("board {} keeps {}", board.slug, kept.join(", "))),
        }));
    }
    let (resolved, source) = rankings.periods.get(&(board.id, selector.clone()))?;
    Some(Ok(PeriodResolution::Players(resolved, source)))
}

/// Caches what a selector means on a board, as a statement has `found` it.
fn cache_resolution(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    found: Option<(ResolvedPeriod, Version, i64)>,
) -> Result<PeriodResolution> {
    let kind = selector.kind();
    let Some((resolved, version, revision)) = found else {
        return Err(Error::NotFound {
            what: Resource::Period,
            name: selector.to_string(),
            hint: Some(match kind {
                PeriodKind::Season => {
                    format!("board {0} has no such season; GET /v1/boards/{0}/periods lists its periods", board.slug)
                }
                PeriodKind::Snapshot => {
                    format!("board {0} has no such snapshot; GET /v1/boards/{0}/periods lists its periods", board.slug)
                }
                PeriodKind::Rolling => {
                    format!("board {0} has no such window; GET /v1/boards/{0}/periods lists its periods", board.slug)
                }
                _ => format!("it does not exist in time zone {}", board.time_zone),
            }),
        });
    };
    let resolved = Arc::new(resolved);
    // Only a period with players is cached.
    if let Some(source) = resolved.source {
        rankings.periods.insert((board.id, selector.clone()), Arc::clone(&resolved), source);
        return Ok(PeriodResolution::Players(resolved, source));
    }
    // Without players: the archive was dropped, the period is being prepared, or it is empty.
    if resolved.period.state == PeriodState::Closed && !resolved.has_archive {
        return Err(Error::NotFound {
            what: Resource::Period,
            name: selector.to_string(),
            hint: Some(format!("{} is closed, and its archive is no longer kept", resolved.period.full_name())),
        });
    }
    if resolved.period.state == PeriodState::Preparing {
        return Err(Error::preparing(&resolved.period.name()));
    }
    if resolved.period.state == PeriodState::Upcoming {
        return Err(Error::NotFound {
            what: Resource::Period,
            name: selector.to_string(),
            hint: Some("it has not begun".to_owned()),
        });
    }
    // The period, or the segment of a closed period, has no scores.
    let Version { epoch, batches } = version;
    let of = StateOf::Batches(batches);
    Ok(PeriodResolution::Empty(
        resolved,
        RankingState { epoch, of, players: 0, revision, answered_by: AnsweredBy::Sql },
    ))
}

/// Attempts to read a period whose ranking or archive is replaced during the read.
const ATTEMPTS: usize = 4;

/// Resolves `selector`, and passes the result to `read`, again if it returns [`Error::Replaced`].
///
/// [`Error::Retry`] after four attempts.
pub(super) async fn read_current<T, F: Future<Output = Result<T>>>(
    rankings: &Rankings,
    board: &Board,
    selector: &PeriodSelector,
    read: impl Fn(PeriodResolution) -> F,
) -> Result<T> {
    for _ in 0..ATTEMPTS {
        match read(resolve(rankings, board, selector).await?).await {
            Err(Error::Replaced) => rankings.periods.forget(board.id, selector),
            found => return found,
        }
    }
    Err(Error::retry(Code::ConcurrentChange, format!("{selector} is being replaced; retry")))
}

/// The period that a selector means.
pub(crate) enum PeriodResolution {
    /// A period with players, and its ranking or archive.
    Players(Arc<ResolvedPeriod>, PeriodSource),
    /// A period without scores.
    Empty(Arc<ResolvedPeriod>, RankingState),
}
