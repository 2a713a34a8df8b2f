//! Boards as requests name them: not looked up in PostgreSQL again for a second, and kept as they were last seen.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    model::board::{Board, BoardSlug, Reading},
    store::Store,
};

/// For how long a board is not looked up again. A change made elsewhere is seen after it; what must not be missed is
/// checked again by the SQL functions.
const LOOKED_UP_FOR: Duration = Duration::from_secs(1);

/// How long before PostgreSQL was found away a board may have been seen for its readers to be those of then.
const SEEN_LATELY: Duration = Duration::from_mins(1);

/// Boards as they were last seen, and when.
#[derive(Debug)]
pub(crate) struct BoardCache {
    seen: moka::sync::Cache<BoardSlug, (Arc<Board>, Instant)>,
    outage: Mutex<Option<Outage>>,
}

/// When PostgreSQL was found away first and last. What was before the first time, and between two that lie far apart, nobody knows.
#[derive(Debug, Clone, Copy)]
struct Outage {
    began_at: Instant,
    found_at: Instant,
}

impl Default for BoardCache {
    fn default() -> Self {
        Self { seen: moka::sync::Cache::new(10_000), outage: Mutex::default() }
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
                let began_at = self.note_outage();
                let (board, seen_at) = last.ok_or(error)?;
                let was_seen_lately = began_at.saturating_duration_since(seen_at) < SEEN_LATELY;
                let is_known = board.reading == Reading::Key || was_seen_lately;
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
        self.seen.insert(slug.clone(), (board, Instant::now()));
        *self.outage() = None;
    }

    /// That PostgreSQL is away now; gives since when. What was found long ago was another outage.
    fn note_outage(&self) -> Instant {
        let (now, mut outage) = (Instant::now(), self.outage());
        let same = outage.filter(|outage| now.saturating_duration_since(outage.found_at) < SEEN_LATELY);
        let began_at = same.map_or(now, |outage| outage.began_at);
        *outage = Some(Outage { began_at, found_at: now });
        began_at
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use chrono::DateTime;

    use super::*;
    use crate::{
        boards, http, instance,
        model::{
            board::{GainMax, KeptArchives, Mode, OnViolation, Order, PeriodKind, Ties},
            settings::Settings,
        },
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
    async fn while_the_database_is_away_a_board_unseen_for_long_before_is_shut_to_whoever_has_no_key() -> Result<()> {
        // Nobody listens there.
        let instance = instance::Instance::connect(&Settings {
            database_url: "postgres://nobody:nothing@127.0.0.1:1/none".into(),
            redis_url: None,
            redis_ca: None,
            redis_prefix: "p".to_owned(),
            read_connections: 1,
            write_connections: 1,
            statement_timeout: Duration::from_secs(1),
            pool_wait: Duration::from_millis(100),
            write_wait: Duration::from_millis(100),
            index_memory: 0,
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
            instance.boards.cache.seen.insert(slug.parse()?, (Arc::new(public(slug)?), seen_at));
            *instance.boards.cache.outage() =
                Some(Outage { began_at: ago(outage), found_at: ago(Duration::from_secs(59)) });
            let found = boards::find(&instance.boards, &slug.parse()?).await?;
            assert_eq!(*found, Board { reading: wanted, ..public(slug)? }, "{slug}");
            assert_eq!(instance.boards.cache.is_shut_for_safety(&found), wanted == Reading::Key, "{slug}");
        }
        // Nobody had asked for anything since, or not for long: that PostgreSQL is away is found now.
        instance.boards.cache.seen.insert("quiet".parse()?, (Arc::new(public("quiet")?), ago(outage)));
        for last in [None, Some(Outage { began_at: ago(outage), found_at: ago(Duration::from_secs(61)) })] {
            *instance.boards.cache.outage() = last;
            assert_eq!(boards::find(&instance.boards, &"quiet".parse()?).await?.reading, Reading::Key, "{last:?}");
        }
        let private = Board { reading: Reading::Key, ..public("private")? };
        instance.boards.cache.seen.insert("private".parse()?, (Arc::new(private), ago(outage)));

        // Whoever has no key is asked for one only where it is certain that one is needed.
        let failed = |error: &dyn std::error::Error| Error::Internal(error.to_string());
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let server = http::serve(Arc::clone(&instance), listener, http::Settings::new("seen".parse()?))?;
        let stop = server.handle();
        let serving = tokio::spawn(server);
        for (slug, status, told) in [("quiet", 503, "who may read"), ("private", 401, "needs a key")] {
            let address = format!("http://{address}/v1/boards/{slug}/scores");
            let answer = reqwest::get(address).await.map_err(|error| failed(&error))?;
            assert_eq!(answer.status(), status, "{slug}");
            let text = answer.text().await.map_err(|error| failed(&error))?;
            assert!(text.contains(told), "{slug}: {text}");
        }
        stop.stop(true).await;
        serving.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;

        let unknown = boards::find(&instance.boards, &"unknown".parse()?).await;
        assert!(matches!(unknown, Err(Error::Unavailable { .. })), "{unknown:?}");
        instance.shut_down().await;
        Ok(())
    }
}
