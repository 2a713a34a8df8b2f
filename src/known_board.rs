//! Boards as requests name them: not looked up in PostgreSQL again for a second, and kept as they were last seen.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    board::{Board, BoardSlug, Reading},
    store::Store,
};

/// For how long a board is not looked up again. A change made elsewhere is seen after it; what must not be missed is
/// checked again by the SQL functions.
const LOOKED_UP_FOR: Duration = Duration::from_secs(1);

/// How long before the last answer of PostgreSQL a board may have been seen for its readers to be those of then.
const SEEN_LATELY: Duration = Duration::from_mins(1);

/// Boards as they were last seen, and when.
#[derive(Debug)]
pub(crate) struct BoardCache {
    seen: moka::sync::Cache<BoardSlug, (Arc<Board>, Instant)>,
    /// When any board was last seen.
    answered_at: Mutex<Option<Instant>>,
}

impl Default for BoardCache {
    fn default() -> Self {
        Self { seen: moka::sync::Cache::new(10_000), answered_at: Mutex::default() }
    }
}

impl BoardCache {
    /// The board of this name. [`Error::NotFound`] when there is none.
    ///
    /// While PostgreSQL cannot be reached, the board as it was last seen: what is cached of it can go on being served. But one that was last
    /// seen long before may have come to ask readers for a key, and so it does.
    pub(crate) async fn find(&self, store: &Store, slug: &BoardSlug) -> Result<Arc<Board>> {
        let last = self.seen.get(slug);
        if let Some((board, seen_at)) = &last
            && seen_at.elapsed() < LOOKED_UP_FOR
        {
            return Ok(Arc::clone(board));
        }
        match store.boards(Some(slug.as_str())).await {
            Ok(mut found) => {
                let board = Arc::new(found.pop().ok_or_else(|| Error::not_found("board", slug.as_str()))?);
                self.learn(slug, Arc::clone(&board));
                Ok(board)
            }
            Err(error @ Error::Unavailable { .. }) => {
                let (board, seen_at) = last.ok_or(error)?;
                let is_known = board.reading == Reading::Key || self.was_seen_lately(seen_at);
                Ok(if is_known { board } else { Arc::new(Board { reading: Reading::Key, ..Board::clone(&board) }) })
            }
            Err(error) => Err(error),
        }
    }

    /// The board of this name as it was last seen, without asking PostgreSQL.
    pub(crate) fn last_seen(&self, slug: &BoardSlug) -> Option<Arc<Board>> {
        self.seen.get(slug).map(|(board, _)| board)
    }

    /// Whether this board, as [`find`](Self::find) gave it, asks readers for a key for no other reason than that it could not be looked at.
    pub(crate) fn is_shut_for_safety(&self, board: &Board) -> bool {
        board.reading == Reading::Key && self.last_seen(&board.slug).is_some_and(|seen| seen.reading == Reading::Public)
    }

    /// Has the board looked up again.
    pub(crate) fn forget(&self, slug: &BoardSlug) {
        self.seen.invalidate(slug);
    }

    fn learn(&self, slug: &BoardSlug, board: Arc<Board>) {
        let now = Instant::now();
        self.seen.insert(slug.clone(), (board, now));
        *self.answered_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Whether a board that was seen then was seen when PostgreSQL could still be reached, and not long before.
    fn was_seen_lately(&self, seen_at: Instant) -> bool {
        let answered_at = self.answered_at.lock().unwrap_or_else(PoisonError::into_inner);
        answered_at.is_none_or(|answered_at| answered_at.saturating_duration_since(seen_at) < SEEN_LATELY)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::{
        board::{self, GainMax, KeptArchives, Mode, OnViolation, Order, PeriodKind, Ties},
        service::{Service, Settings},
    };

    /// A board that everybody may read, as PostgreSQL gave it.
    fn public(slug: &str) -> Result<Board> {
        Ok(Board {
            id: 1,
            slug: slug.parse()?,
            title: "Main".to_owned(),
            mode: Mode::Sum,
            order: Order::Desc,
            ties: Ties::Shared,
            periods: vec![PeriodKind::AllTime],
            lanes: 1,
            time_zone: "UTC".to_owned(),
            points_min: 0,
            points_max: 100,
            frozen_top_size: 100,
            kept_archives: KeptArchives::new(),
            reading: Reading::Public,
            events_per_minute: None,
            gain_max: GainMax::new(),
            on_violation: OnViolation::Refuse,
            created_at: DateTime::UNIX_EPOCH,
        })
    }

    #[tokio::test]
    async fn while_the_database_is_away_a_board_unseen_for_long_before_asks_readers_for_a_key() -> Result<()> {
        // Nobody listens there.
        let service = Service::connect(&Settings {
            database_url: "postgres://nobody:nothing@127.0.0.1:1/none".into(),
            pooler_url: None,
            redis_url: None,
            redis_ca: None,
            redis_prefix: "p".to_owned(),
            read_connections: 1,
            write_connections: 1,
            statement_timeout: Duration::from_secs(1),
            pool_wait: Duration::from_millis(100),
            write_wait: Duration::from_millis(100),
            master_keys: None,
            maintenance_every: None,
        })
        .await?;
        // The outage began a while ago; so long before it each board was seen.
        let now = Instant::now();
        let ago = |time: Duration| now.checked_sub(time).unwrap_or(now);
        let outage = Duration::from_mins(3);
        for (slug, before, wanted) in [
            ("seen", Duration::ZERO, Reading::Public),
            ("lately", Duration::from_secs(59), Reading::Public),
            ("long", Duration::from_secs(61), Reading::Key),
        ] {
            let seen_at = ago(outage + before);
            service.boards.seen.insert(slug.parse()?, (Arc::new(public(slug)?), seen_at));
            *service.boards.answered_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(ago(outage));
            let found = board::find(&service, &slug.parse()?).await?;
            assert_eq!(*found, Board { reading: wanted, ..public(slug)? }, "{slug}");
            assert_eq!(service.boards.is_shut_for_safety(&found), wanted == Reading::Key, "{slug}");
        }
        let private = Board { reading: Reading::Key, ..public("private")? };
        service
            .boards
            .seen
            .insert("private".parse()?, (Arc::new(private.clone()), ago(outage + Duration::from_hours(1))));
        let found = board::find(&service, &"private".parse()?).await?;
        assert!(*found == private && !service.boards.is_shut_for_safety(&found));
        let unknown = board::find(&service, &"unknown".parse()?).await;
        assert!(matches!(unknown, Err(Error::Unavailable { .. })), "{unknown:?}");
        service.shut_down().await;
        Ok(())
    }
}
