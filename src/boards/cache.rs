//! Cache of boards by slug. A cached board is at most a second old, except during an outage of
//! PostgreSQL, when the last known state is used.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Resource, Result,
    model::board::{Board, BoardSlug, Reading},
    single_flight::SingleFlight,
    store::Store,
};

/// Maximum age of a cached board. A change by another instance takes effect after it. The SQL
/// functions check again whatever must not be outdated.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A public board stays public during an outage if it was looked up within this time before. Two
/// failures that lie further apart belong to different outages.
const OUTAGE_GRACE: Duration = Duration::from_mins(1);

/// The last known state of each board, with the time of its look-up.
#[derive(Debug)]
pub(crate) struct BoardCache {
    seen: moka::sync::Cache<BoardSlug, (Arc<Board>, Instant)>,
    /// Callers share the look-up of a board that has become too old.
    look_ups: SingleFlight<BoardSlug, Arc<Board>>,
    /// When this instance last changed a board. Look-ups that began before may be outdated.
    changed_at: Mutex<Option<Instant>>,
    outage: Mutex<Option<Outage>>,
}

/// The first and the last failure of an outage of PostgreSQL. Its state before the first failure is
/// unknown.
#[derive(Debug, Clone, Copy)]
struct Outage {
    first_failure_at: Instant,
    last_failure_at: Instant,
}

impl BoardCache {
    /// Creates an empty cache. `timeout` limits the wait for another caller's look-up.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            seen: moka::sync::Cache::new(10_000),
            look_ups: SingleFlight::new(timeout),
            changed_at: Mutex::default(),
            outage: Mutex::default(),
        }
    }

    /// Returns the board with this slug. [`Error::NotFound`] if there is none.
    ///
    /// While PostgreSQL is unreachable, returns the last known state, so that cached answers can
    /// still be served. A public board last seen long before the outage may have become private
    /// since. It is returned as requiring a key.
    pub(crate) async fn find(&self, store: &Store, slug: &BoardSlug) -> Result<Arc<Board>> {
        if let Some(board) = self.fresh(slug) {
            return Ok(board);
        }
        let look_up = async || {
            // Another caller may have looked it up meanwhile.
            if let Some(board) = self.fresh(slug) {
                return Ok(board);
            }
            let asked_at = Instant::now();
            let board = store.board(slug).await?;
            let board = Arc::new(board.ok_or_else(|| Error::not_found(Resource::Board, slug.as_str()))?);
            self.insert(slug, Arc::clone(&board), asked_at);
            Ok(board)
        };
        match self.look_ups.read(slug.clone(), look_up).await {
            Err(error) if store.is_outage(&error).await => {
                let first_failure_at = self.note_outage();
                let (board, seen_at) = self.seen.get(slug).ok_or(error)?;
                let was_seen_recently = first_failure_at.saturating_duration_since(seen_at) < OUTAGE_GRACE;
                let is_safe = board.reading == Reading::Key || was_seen_recently;
                Ok(if is_safe { board } else { Arc::new(Board { reading: Reading::Key, ..Board::clone(&board) }) })
            }
            found => found,
        }
    }

    /// Returns the board if it is cached and not too old.
    fn fresh(&self, slug: &BoardSlug) -> Option<Arc<Board>> {
        self.seen.get(slug).filter(|(_, seen_at)| seen_at.elapsed() < MAX_AGE).map(|(board, _)| board)
    }

    /// Returns the last known state of the board, without asking PostgreSQL.
    pub(crate) fn last_seen(&self, slug: &BoardSlug) -> Option<Arc<Board>> {
        self.seen.get(slug).map(|(board, _)| board)
    }

    /// Returns whether a board from [`find`](Self::find) requires a key only because of an outage.
    pub(crate) fn requires_key_for_outage(&self, board: &Board) -> bool {
        board.reading == Reading::Key && self.last_seen(&board.slug).is_some_and(|seen| seen.reading == Reading::Public)
    }

    /// Drops the cached board, which this instance has changed.
    pub(crate) fn forget(&self, slug: &BoardSlug) {
        let mut changed_at = self.changed_at();
        *changed_at = Some(Instant::now());
        self.seen.invalidate(slug);
    }

    /// Keeps the result of a look-up that began at `asked_at`, unless a later one or a change may
    /// have overtaken it.
    fn insert(&self, slug: &BoardSlug, board: Arc<Board>, asked_at: Instant) {
        *self.outage() = None;
        let changed_at = self.changed_at();
        let is_newer = self.seen.get(slug).is_none_or(|(_, seen_at)| seen_at <= asked_at);
        if is_newer && changed_at.is_none_or(|changed_at| changed_at < asked_at) {
            self.seen.insert(slug.clone(), (board, asked_at));
        }
    }

    /// The lock under which boards are inserted and dropped.
    fn changed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.changed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failure of PostgreSQL and returns the start of the outage. A failure after a long
    /// gap starts another outage.
    fn note_outage(&self) -> Instant {
        let (now, mut outage) = (Instant::now(), self.outage());
        let same = outage.filter(|outage| now.saturating_duration_since(outage.last_failure_at) < OUTAGE_GRACE);
        let first_failure_at = same.map_or(now, |outage| outage.first_failure_at);
        *outage = Some(Outage { first_failure_at, last_failure_at: now });
        first_failure_at
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::{boards, http, instance, model::settings::Settings, tested};

    #[test]
    fn a_slow_look_up_does_not_undo_a_change() -> Result<()> {
        let cache = BoardCache::new(Duration::from_secs(1));
        let slug: BoardSlug = "main".parse()?;
        let private = || tested::board("main").map(|board| Arc::new(Board { reading: Reading::Key, ..board }));
        let reading = || cache.last_seen(&slug).map(|board| board.reading);
        let (slow, fast) = (Instant::now(), Instant::now());
        cache.forget(&slug);
        cache.insert(&slug, Arc::new(tested::board("main")?), slow);
        assert_eq!(reading(), None);
        let later = Instant::now() + Duration::from_millis(1);
        cache.insert(&slug, private()?, later);
        cache.insert(&slug, Arc::new(tested::board("main")?), fast);
        assert_eq!(reading(), Some(Reading::Key));
        Ok(())
    }

    #[tokio::test]
    async fn during_an_outage_a_public_board_not_seen_recently_requires_a_key() -> Result<()> {
        let instance = instance::Instance::connect(&Settings::without_server()).await?;
        // The outage began 3 minutes ago. `before`: time from the last look-up of the board to its
        // start.
        let now = Instant::now();
        let ago = |time: Duration| now.checked_sub(time).unwrap_or(now);
        let outage = Duration::from_mins(3);
        for (slug, before, wanted) in [
            ("seen", Duration::ZERO, Reading::Public),
            ("lately", Duration::from_secs(59), Reading::Public),
            ("long", Duration::from_secs(61), Reading::Key),
        ] {
            let seen_at = ago(outage + before);
            instance.boards.cache.seen.insert(slug.parse()?, (Arc::new(tested::board(slug)?), seen_at));
            *instance.boards.cache.outage() =
                Some(Outage { first_failure_at: ago(outage), last_failure_at: ago(Duration::from_secs(59)) });
            let found = boards::find(&instance.boards, &slug.parse()?).await?;
            assert_eq!(*found, Board { reading: wanted, ..tested::board(slug)? }, "{slug}");
            assert_eq!(instance.boards.cache.requires_key_for_outage(&found), wanted == Reading::Key, "{slug}");
        }
        // No request has failed yet, or the last failure was long ago: this one starts an outage.
        instance.boards.cache.seen.insert("quiet".parse()?, (Arc::new(tested::board("quiet")?), ago(outage)));
        for last in
            [None, Some(Outage { first_failure_at: ago(outage), last_failure_at: ago(Duration::from_secs(61)) })]
        {
            *instance.boards.cache.outage() = last;
            assert_eq!(boards::find(&instance.boards, &"quiet".parse()?).await?.reading, Reading::Key, "{last:?}");
        }
        let private = Board { reading: Reading::Key, ..tested::board("private")? };
        instance.boards.cache.seen.insert("private".parse()?, (Arc::new(private), ago(outage)));

        // A caller without a key gets 401 only if the board is certain to require one. The server
        // runs here because no request can set the age of a cached board.
        let failed = |error: &dyn std::error::Error| Error::Internal(error.to_string());
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let server = http::serve(Arc::clone(&instance), listener, http::Settings::new("seen".parse()?))?;
        let stop = server.handle();
        let serving = tokio::spawn(server);
        for (slug, status, phrase) in [("quiet", 503, "access to board quiet"), ("private", 401, "key")] {
            let address = format!("http://{address}/v1/boards/{slug}/scores");
            let answer = reqwest::get(address).await.map_err(|error| failed(&error))?;
            assert_eq!(answer.status(), status, "{slug}");
            let text = answer.text().await.map_err(|error| failed(&error))?;
            assert!(text.contains(phrase), "{slug}: {text}");
        }
        stop.stop(true).await;
        serving.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;

        let unknown = boards::find(&instance.boards, &"unknown".parse()?).await;
        assert!(matches!(unknown, Err(Error::Outage(_))), "{unknown:?}");
        instance.shut_down().await;
        Ok(())
    }
}
