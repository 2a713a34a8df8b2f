//! Creates, changes and finds boards.

pub(crate) mod cache;

use std::{sync::Arc, time::Duration};

use crate::{
    Error, Result,
    model::{
        act::Actor,
        board::{Board, BoardFilter, BoardSettings, BoardSlug, KEPT_ARCHIVES_MAX, Mode},
        json::EXACT_MAX,
        key::Key,
        name::Named as _,
        tag::Tag,
        tier::Tiers,
        user::check_text,
    },
    store::Store,
};

/// Maximum default number of lanes. Each lane adds to the cost of every read.
const DEFAULT_LANES_MAX: usize = 4;

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
pub async fn create(boards: &Boards, slug: BoardSlug, mut rules: BoardSettings, by: &Actor) -> Result<Board> {
    check(&rules, "UTC")?;
    if rules.mode != Some(Mode::Combined) && rules.lanes.is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        rules.lanes = i16::try_from(cores.min(DEFAULT_LANES_MAX)).ok();
    }
    boards.store.create_board(&slug, &rules, by).await?;
    boards.cache.forget(&slug);
    find(boards, &slug).await.map_err(Error::after_write).map(|board| Board::clone(&board))
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
pub async fn update(boards: &Boards, slug: &BoardSlug, change: &BoardSettings, by: &Actor) -> Result<Board> {
    let board = find(boards, slug).await?;
    check(change, &board.time_zone)?;
    boards.store.update_board(slug, change, by).await?;
    boards.cache.forget(slug);
    find(boards, slug).await.map_err(Error::after_write).map(|board| Board::clone(&board))
}

/// Checks values that PostgreSQL cannot check, or would reject with a vaguer message. `time_zone`
/// applies if the rules have none.
fn check(rules: &BoardSettings, time_zone: &str) -> Result<()> {
    for (field, text) in [("title", &rules.title), ("time_zone", &rules.time_zone)] {
        text.as_ref().map_or(Ok(()), |text| check_text(field, text, 128))?;
    }
    if let Some((kind, _)) = rules.kept_archives.iter().find(|(_, kept)| !in_range(**kept, KEPT_ARCHIVES_MAX)) {
        let field = format!("kept_archives.{}", kind.name());
        return Err(Error::invalid(field, format!("must be 1 to {KEPT_ARCHIVES_MAX}")));
    }
    if let Some((kind, _)) = rules.gain_max.iter().find(|(_, most)| !in_range(**most, EXACT_MAX)) {
        return Err(Error::invalid(format!("gain_max.{}", kind.name()), format!("must be 1 to {EXACT_MAX}")));
    }
    rules.tiers.as_ref().map_or(Ok(()), Tiers::check)?;
    match rules.combination.as_ref().and_then(|combination| combination.refresh.as_ref()) {
        Some(refresh) => refresh.check(rules.time_zone.as_deref().unwrap_or(time_zone)),
        None => Ok(()),
    }
}

fn in_range<N: Copy + PartialOrd + From<i32>>(number: Option<N>, max: N) -> bool {
    number.is_none_or(|number| (N::from(1)..=max).contains(&number))
}
