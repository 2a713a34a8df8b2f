//! Creates, changes and finds boards.

pub(crate) mod cache;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::{
            Board, BoardChange, BoardFilter, BoardSlug, DEFAULT_POINTS_BOUND, EVENTS_PER_MINUTE_MAX, FROZEN_TOP_MAX,
            FirstLayout, KEPT_ARCHIVES_MAX, KeptArchivesChange, Mode, NewBoard, PeriodKind, UNLISTED_KINDS,
            WindowLength,
        },
        combination::{SOURCES_MAX, Source},
        key::Key,
        name::Named as _,
        segment::{Attribute, SEGMENTS_MAX},
        tag::{TAGS_MAX, Tag},
        user::check_text,
    },
    store::Store,
};

/// Maximum default number of lanes. Each lane adds to the cost of every read.
const DEFAULT_LANES_MAX: usize = 4;

/// Maximum number of rolling windows of a board. Every score enters all of them.
const WINDOWS_MAX: usize = 8;

impl FirstLayout {
    /// Returns the scores between the first buckets of a new ranking.
    fn bounds(&self) -> Result<Vec<i64>> {
        match self {
            Self::Bounds(bounds) => {
                if bounds.is_empty() || bounds.len() > 99 || bounds[0] == i64::MIN || !bounds.is_sorted_by(|a, b| a < b)
                {
                    return Err(Error::invalid(
                        "first_layout.bounds",
                        "must be 1 to 99 scores, strictly ascending, all above the least 64-bit integer",
                    ));
                }
                Ok(bounds.clone())
            }
            Self::ExpectedPoints(points) if *points < 100 => {
                Err(Error::invalid("first_layout.expected_points", "must be at least 100, one for each bucket"))
            }
            Self::ExpectedPoints(points) => {
                // In steps of whole points. The last range takes the remainder.
                Ok((1..100).map(|n| points / 100 * n).collect())
            }
        }
    }
}

/// The boards of an instance.
#[derive(Debug)]
pub struct Boards {
    pub(crate) store: Store,
    pub(crate) cache: cache::BoardCache,
}

impl Boards {
    /// Creates an empty cache of boards. `timeout` limits the wait for another caller's look-up.
    pub(crate) fn new(store: Store, timeout: Duration) -> Self {
        Self { store, cache: cache::BoardCache::new(timeout) }
    }
}

/// Creates a board.
///
/// [`Error::Conflict`] if the slug is taken, [`Error::Invalid`] if the rules contradict each other.
pub async fn create(boards: &Boards, new: NewBoard, by: &Actor) -> Result<Board> {
    check_lanes(new.lanes)?;
    check_frozen_top_size(Some(new.frozen_top_size))?;
    check_kept(&new.kept_archives)?;
    check_events_per_minute(new.events_per_minute)?;
    for (&kind, &most) in &new.gain_max {
        check_gain(kind, most)?;
    }
    check_windows(&new.rolling)?;
    check_tags(&new.tags)?;
    check_segments(&new.segments)?;
    if let Some(title) = &new.title {
        check_text("title", title, 128)?;
    }
    if (new.mode == Mode::Combined) != new.combination.is_some() {
        return Err(Error::invalid("combination", "is required for mode combined, and only for this mode"));
    }
    if let Some(combination) = &new.combination {
        check_sources(&combination.sources)?;
        combination.refresh.check(&new.time_zone)?;
    }
    let mut kinds = new.periods.clone();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() || kinds.len() != new.periods.len() || kinds.iter().any(|kind| UNLISTED_KINDS.contains(kind)) {
        return Err(Error::invalid(
            "periods",
            "must be one or more of all_time, hour, day, week, month, quarter and year, each at most once",
        ));
    }
    let bounds = new.first_layout.as_ref().map(FirstLayout::bounds).transpose()?.unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lanes = new.lanes.unwrap_or(i16::try_from(cores.min(DEFAULT_LANES_MAX)).unwrap_or(1));
    boards.store.create_board(&new, lanes, &bounds, by).await?;
    boards.cache.forget(&new.slug);
    find(boards, &new.slug).await.map(|board| Board::clone(&board))
}

/// Returns all boards, or those with a tag, ordered by slug. Leaves out damaged ones.
pub async fn list(store: &Store, tag: Option<&Tag>) -> Result<Vec<Board>> {
    Ok(store.boards(BoardFilter { tag, ..BoardFilter::default() }).await?.0)
}

/// Returns a page of the boards that the holder of this key, or everyone, may read, and the cursor of
/// the next page; with a tag, only the boards that have it. Leaves out damaged ones.
///
/// A cursor is the slug of the last board, which need not be in the list any more.
pub(crate) async fn readable(
    store: &Store,
    key: Option<&Key>,
    tag: Option<&Tag>,
    limit: usize,
    cursor: Option<&str>,
) -> Result<(Vec<Board>, Option<String>)> {
    let after = cursor.map(str::parse).transpose();
    let after: Option<BoardSlug> =
        after.map_err(|_: Error| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))?;
    // A key without boards is for all.
    let readable = key.map_or(Some(&[][..]), |key| Some(&*key.boards).filter(|boards| !boards.is_empty()));
    store.boards(BoardFilter { tag, after: after.as_ref(), readable, limit: Some(limit) }).await
}

/// Returns the board with this slug, from the cache if possible.
///
/// [`Error::NotFound`] if there is none. While PostgreSQL is unreachable, returns the last known
/// state of the board.
pub async fn find(boards: &Boards, slug: &BoardSlug) -> Result<Arc<Board>> {
    boards.cache.find(&boards.store, slug).await
}

/// Changes a board. [`Error::Conflict`] if a rule can no longer change.
pub async fn update(boards: &Boards, slug: &BoardSlug, change: BoardChange, by: &Actor) -> Result<Board> {
    let board = find(boards, slug).await?;
    if board.mode == Mode::Combined {
        check_combined(&change)?;
    }
    check_lanes(change.lanes)?;
    check_frozen_top_size(change.frozen_top_size)?;
    check_kept(&change.kept_archives)?;
    check_events_per_minute(change.events_per_minute.flatten())?;
    for (&kind, most) in &change.gain_max {
        most.map_or(Ok(()), |most| check_gain(kind, most))?;
    }
    check_windows(change.rolling.as_deref().unwrap_or_default())?;
    change.tags.as_ref().map_or(Ok(()), check_tags)?;
    check_segments(change.segments.as_deref().unwrap_or_default())?;
    if let Some(title) = &change.title {
        check_text("title", title, 128)?;
    }
    if let Some(combination) = &change.combination {
        if let Some(sources) = &combination.sources {
            check_sources(sources)?;
        }
        if let Some(refresh) = &combination.refresh {
            refresh.check(change.time_zone.as_ref().unwrap_or(&board.time_zone))?;
        }
    }
    boards.store.update_board(slug.as_str(), &change, by).await?;
    boards.cache.forget(slug);
    find(boards, slug).await.map(|board| Board::clone(&board))
}

/// Refuses changes of rules about events of a board that has none.
fn check_combined(change: &BoardChange) -> Result<()> {
    let given = [
        ("lanes", change.lanes.is_some()),
        ("points_min", change.points_min.is_some()),
        ("points_max", change.points_max.is_some()),
        ("kept_archives", !change.kept_archives.is_empty()),
        ("events_per_minute", change.events_per_minute.is_some()),
        ("gain_max", !change.gain_max.is_empty()),
        ("on_violation", change.on_violation.is_some()),
        ("snapshots", change.snapshots.is_some()),
        ("rolling", change.rolling.is_some()),
        ("segments", change.segments.is_some()),
        ("buckets", change.buckets.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(Error::invalid(field, "does not apply to a combined board")),
        None => Ok(()),
    }
}

fn check_lanes(lanes: Option<i16>) -> Result<()> {
    match lanes {
        Some(lanes) if !(1..=64).contains(&lanes) => Err(Error::invalid("lanes", "must be 1 to 64")),
        _ => Ok(()),
    }
}

fn check_sources(sources: &[Source]) -> Result<()> {
    if (1..=SOURCES_MAX).contains(&sources.len()) {
        Ok(())
    } else {
        Err(Error::invalid("sources", format!("must be 1 to {SOURCES_MAX}, not {}", sources.len())))
    }
}

fn check_frozen_top_size(size: Option<i32>) -> Result<()> {
    match size {
        Some(size) if !(1..=FROZEN_TOP_MAX).contains(&size) => {
            Err(Error::invalid("frozen_top_size", format!("must be 1 to {FROZEN_TOP_MAX}")))
        }
        _ => Ok(()),
    }
}

fn check_kept(kept: &KeptArchivesChange) -> Result<()> {
    match kept.iter().find(|(_, kept)| kept.is_some_and(|kept| !(1..=KEPT_ARCHIVES_MAX).contains(&kept))) {
        Some((kind, _)) => {
            Err(Error::invalid(format!("kept_archives.{}", kind.name()), format!("must be 1 to {KEPT_ARCHIVES_MAX}")))
        }
        None => Ok(()),
    }
}

fn check_windows(lengths: &[WindowLength]) -> Result<()> {
    let distinct: BTreeSet<_> = lengths.iter().collect();
    if lengths.len() <= WINDOWS_MAX && distinct.len() == lengths.len() {
        Ok(())
    } else {
        Err(Error::invalid("rolling", format!("must be up to {WINDOWS_MAX} lengths, each at most once")))
    }
}

fn check_tags(tags: &BTreeSet<Tag>) -> Result<()> {
    if tags.len() <= TAGS_MAX {
        Ok(())
    } else {
        Err(Error::invalid("tags", format!("must have at most {TAGS_MAX} tags")))
    }
}

fn check_segments(segments: &[Attribute]) -> Result<()> {
    let distinct: BTreeSet<_> = segments.iter().collect();
    if segments.len() <= SEGMENTS_MAX && distinct.len() == segments.len() {
        Ok(())
    } else {
        Err(Error::invalid("segments", format!("must be up to {SEGMENTS_MAX} attributes, each at most once")))
    }
}

fn check_events_per_minute(events: Option<i32>) -> Result<()> {
    match events {
        Some(events) if !(1..=EVENTS_PER_MINUTE_MAX).contains(&events) => {
            Err(Error::invalid("events_per_minute", format!("must be 1 to {EVENTS_PER_MINUTE_MAX}")))
        }
        _ => Ok(()),
    }
}

fn check_gain(kind: PeriodKind, most: i64) -> Result<()> {
    if (1..=DEFAULT_POINTS_BOUND).contains(&most) {
        Ok(())
    } else {
        Err(Error::invalid(format!("gain_max.{}", kind.name()), format!("must be 1 to {DEFAULT_POINTS_BOUND}")))
    }
}
