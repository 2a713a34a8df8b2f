//! Creates, changes and finds boards. A cached board is at most a second old, except during an
//! outage of PostgreSQL, when the last known state is used.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    Error, Resource, Result,
    model::{
        act::Actor,
        board::{Board, BoardFilter, BoardPattern, BoardSettings, BoardSlug, KEPT_ARCHIVES_MAX, Mode, Reading},
        json::EXACT_MAX,
        key::Key,
        name::Named as _,
        template::{Template, TemplateSettings},
        tier::Tiers,
        user::check_text,
    },
    single_flight::{SingleFlight, SingleFlightCache},
    store::{Administrator, Reader, board::TemplateBoard},
};

/// Maximum default number of lanes. Each lane adds to the cost of every read.
const DEFAULT_LANES_MAX: usize = 4;

/// Maximum age of a cached board. A change by another instance takes effect after it. The SQL
/// functions check again whatever must not be outdated.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A public board stays public during an outage if it was looked up within this time before
/// the outage. Two failures that lie further apart belong to different outages.
const OUTAGE_GRACE: Duration = Duration::from_mins(1);

/// The boards of this process's database, with the last known state of each.
#[derive(Debug)]
pub struct Boards {
    pub(crate) reader: Reader,
    /// Boards, with the times of their look-ups.
    seen: moka::sync::Cache<BoardSlug, (Arc<Board>, Instant)>,
    /// Names of templates' boards: id, template, and the template's revision at the look-up. There may be
    /// many, so that all of a template share its rules.
    names: moka::sync::Cache<BoardSlug, (i32, i32, i64)>,
    /// A board of each template, by the template's id.
    templates: moka::sync::Cache<i32, Arc<Board>>,
    /// Present revisions of templates.
    revisions: SingleFlightCache<i32, i64>,
    /// Callers share the look-up of a board that has become too old.
    look_ups: SingleFlight<BoardSlug, Arc<Board>>,
    /// When this instance last changed a board. Look-ups that began before may be outdated.
    changed_at: Mutex<Option<Instant>>,
    outage: Mutex<Option<Outage>>,
}

/// The first and the last failure of an outage of PostgreSQL. The state of PostgreSQL before the
/// first failure is unknown.
#[derive(Debug, Clone, Copy)]
struct Outage {
    first_failure_at: Instant,
    last_failure_at: Instant,
}

/// Creates a board.
///
/// [`Error::Conflict`] if the slug is taken, [`Error::Invalid`] if the rules contradict each other.
pub async fn create(
    admin: &Administrator,
    boards: &Boards,
    slug: BoardSlug,
    mut rules: BoardSettings,
    by: &Actor,
) -> Result<Board> {
    check(&rules, "UTC")?;
    if rules.mode != Some(Mode::Combined) && rules.lanes.is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        rules.lanes = i16::try_from(cores.min(DEFAULT_LANES_MAX)).ok();
    }
    admin.create_board(&slug, &rules, by).await?;
    boards.forget(&slug);
    find(boards, &slug).await.map_err(Error::after_write).map(|board| Board::clone(&board))
}

/// Returns the selected boards, ordered by slug. Leaves out damaged ones.
pub async fn list(reader: &Reader, filter: BoardFilter<'_>) -> Result<Vec<Board>> {
    Ok(reader.boards(filter).await?.0)
}

/// Returns a page of the boards that the key's holder may read; without a key, that everyone may
/// read. Also returns the cursor of the next page. Leaves out damaged boards.
///
/// A cursor is the slug of the last board, which need not be in the list any more.
pub(crate) async fn readable(
    reader: &Reader,
    key: Option<&Key>,
    filter: BoardFilter<'_>,
    cursor: Option<&str>,
) -> Result<(Vec<Board>, Option<String>)> {
    let after = cursor.map(str::parse).transpose();
    let after: Option<BoardSlug> =
        after.map_err(|_: Error| Error::invalid("cursor", "is not the `next_cursor` of an earlier page"))?;
    // A key that lists no boards may read all of them.
    let readable = key.map_or(Some(&[][..]), |key| Some(&*key.boards).filter(|boards| !boards.is_empty()));
    reader.boards(BoardFilter { after: after.as_ref(), readable, ..filter }).await
}

/// [`Error::NotFound`] if no board or template has this name or pattern.
pub async fn check_pattern(boards: &Boards, pattern: &BoardPattern) -> Result<()> {
    match pattern.to_string().parse::<BoardSlug>() {
        Ok(slug) => find(boards, &slug).await.map(drop),
        Err(_)
            if boards.reader.templates(None).await?.iter().any(|template| template.pattern == pattern.to_string()) =>
        {
            Ok(())
        }
        Err(_) => Err(Error::not_found(Resource::Board, pattern.to_string())),
    }
}

/// Returns the board with this slug, from the cache if possible. [`Error::NotFound`] if there is
/// none.
///
/// While PostgreSQL is unreachable, returns the last known state, so that cached answers can still
/// be served. A public board last seen long before the outage may have become private since. It is
/// returned as requiring a key.
pub async fn find(boards: &Boards, slug: &BoardSlug) -> Result<Arc<Board>> {
    if let Some(board) = boards.fresh(slug) {
        return Ok(board);
    }
    if let Some(board) = boards.of_template(slug).await {
        return Ok(board);
    }
    let look_up = async || {
        // Another caller may have looked it up meanwhile.
        if let Some(board) = boards.fresh(slug) {
            return Ok(board);
        }
        let asked_at = Instant::now();
        if let Some(board) = boards.of_known_template(slug).await? {
            if !board.is_future() {
                boards.insert(slug, Arc::clone(&board), asked_at);
            }
            return Ok(board);
        }
        let board = boards.reader.board(slug).await?;
        let board = Arc::new(board.ok_or_else(|| Error::not_found(Resource::Board, slug.as_str()))?);
        // The first score, on any instance, creates the board.
        if !board.is_future() {
            boards.insert(slug, Arc::clone(&board), asked_at);
        }
        Ok(board)
    };
    match boards.look_ups.read(slug.clone(), look_up).await {
        Err(error) if boards.reader.servers.is_outage(&error).await => {
            let first_failure_at = boards.record_failure();
            let (board, seen_at) = boards.seen.get(slug).ok_or(error)?;
            let was_seen_recently = first_failure_at.saturating_duration_since(seen_at) < OUTAGE_GRACE;
            let is_safe = board.reading == Reading::Key || was_seen_recently;
            Ok(if is_safe { board } else { Arc::new(Board { reading: Reading::Key, ..Board::clone(&board) }) })
        }
        found => found,
    }
}

/// Changes a board. [`Error::Conflict`] if a rule can no longer change.
pub async fn update(
    admin: &Administrator,
    boards: &Boards,
    slug: &BoardSlug,
    change: &BoardSettings,
    by: &Actor,
) -> Result<Board> {
    let board = find(boards, slug).await?;
    check(change, &board.time_zone)?;
    admin.update_board(slug, change, by).await?;
    boards.forget(slug);
    find(boards, slug).await.map_err(Error::after_write).map(|board| Board::clone(&board))
}

/// Deletes a board with all its scores. Maintenance removes its rows later.
///
/// [`Error::Conflict`] while a combined board or an import needs it.
pub async fn delete(admin: &Administrator, boards: &Boards, slug: &BoardSlug, by: &Actor) -> Result<()> {
    admin.delete_board(slug.as_str(), by).await?;
    boards.forget(slug);
    Ok(())
}

/// Deletes a template without boards.
///
/// [`Error::Conflict`] if it has boards.
pub(crate) async fn delete_template(admin: &Administrator, name: &str, by: &Actor) -> Result<()> {
    let template = template(&admin.reader, name).await?;
    admin.delete_board(&template.pattern, by).await
}

/// Creates or changes a template.
///
/// [`Error::Conflict`] if the pattern shares names with another template, or if a rule can no longer
/// change.
pub(crate) async fn set_template(
    admin: &Administrator,
    boards: &Boards,
    name: &str,
    settings: &TemplateSettings,
    by: &Actor,
) -> Result<Template> {
    check(&settings.rules, "UTC")?;
    admin.set_template(name, settings, by).await?;
    boards.forget_all();
    template(&boards.reader, name).await.map_err(Error::after_write)
}

/// Returns a template. [`Error::NotFound`] if there is none.
pub(crate) async fn template(reader: &Reader, name: &str) -> Result<Template> {
    reader.templates(Some(name)).await?.pop().ok_or_else(|| Error::not_found(Resource::Template, name))
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

/// Returns a board that has these rules of its template.
fn board_of(rules: &Board, id: i32, slug: &BoardSlug) -> Board {
    Board { id, slug: slug.clone(), title: slug.to_string(), ..rules.clone() }
}

impl Boards {
    /// Creates an empty cache of boards. `timeout` limits the wait for another caller's look-up.
    pub(crate) fn new(reader: Reader, timeout: Duration) -> Self {
        Self {
            reader,
            seen: moka::sync::Cache::new(10_000),
            names: moka::sync::Cache::new(200_000),
            templates: moka::sync::Cache::new(1_000),
            revisions: SingleFlightCache::new(timeout, MAX_AGE),
            look_ups: SingleFlight::new(timeout),
            changed_at: Mutex::default(),
            outage: Mutex::default(),
        }
    }

    /// Returns the board if it is cached and not too old.
    fn fresh(&self, slug: &BoardSlug) -> Option<Arc<Board>> {
        self.seen.get(slug).filter(|(_, seen_at)| seen_at.elapsed() < MAX_AGE).map(|(board, _)| board)
    }

    /// Returns a known board of a template if, within [`MAX_AGE`], neither the template has changed nor a
    /// board of it was deleted.
    async fn of_template(&self, slug: &BoardSlug) -> Option<Arc<Board>> {
        let (id, template_id, revision) = self.names.get(slug)?;
        let present = self.revisions.read(template_id, || self.reader.structure_revision(template_id)).await.ok()?;
        let rules = self.templates.get(&template_id)?;
        (present == revision && rules.structure_revision == revision).then(|| Arc::new(board_of(&rules, id, slug)))
    }

    /// Returns a board, or one that its first score will create, if the present rules of its template are in
    /// memory.
    async fn of_known_template(&self, slug: &BoardSlug) -> Result<Option<Arc<Board>>> {
        if self.templates.iter().next().is_none() {
            return Ok(None);
        }
        let Some(TemplateBoard { template_id, id, revision }) = self.reader.template_board(slug).await? else {
            return Ok(None);
        };
        let rules = self.templates.get(&template_id).filter(|rules| rules.structure_revision == revision);
        Ok(rules.map(|rules| Arc::new(board_of(&rules, id.unwrap_or(-template_id), slug))))
    }

    /// Returns the last known state of the board, without asking PostgreSQL.
    pub(crate) fn last_seen(&self, slug: &BoardSlug) -> Option<Arc<Board>> {
        self.seen.get(slug).map(|(board, _)| board)
    }

    /// Returns whether a board from [`find`] requires a key only because of an outage.
    pub(crate) fn requires_key_for_outage(&self, board: &Board) -> bool {
        board.reading == Reading::Key && self.last_seen(&board.slug).is_some_and(|seen| seen.reading == Reading::Public)
    }

    /// Drops the cached board, which this instance has changed.
    fn forget(&self, slug: &BoardSlug) {
        let mut changed_at = self.changed_at();
        *changed_at = Some(Instant::now());
        self.seen.invalidate(slug);
        self.names.invalidate(slug);
    }

    /// Drops all cached boards, because this instance has changed a template or league.
    pub(crate) fn forget_all(&self) {
        let mut changed_at = self.changed_at();
        *changed_at = Some(Instant::now());
        self.seen.invalidate_all();
        self.names.invalidate_all();
    }

    /// Keeps the result of a look-up that began at `asked_at`, unless a later one or a change may
    /// have overtaken it.
    fn insert(&self, slug: &BoardSlug, board: Arc<Board>, asked_at: Instant) {
        *self.outage() = None;
        let changed_at = self.changed_at();
        let is_newer = self.seen.get(slug).is_none_or(|(_, seen_at)| seen_at <= asked_at);
        if is_newer && changed_at.is_none_or(|changed_at| changed_at < asked_at) {
            if board.template.is_some() {
                self.names.insert(slug.clone(), (board.id, board.owner, board.structure_revision));
                self.templates.insert(board.owner, Arc::clone(&board));
            }
            self.seen.insert(slug.clone(), (board, asked_at));
        }
    }

    /// The lock under which boards are inserted and dropped.
    fn changed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.changed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failure of PostgreSQL and returns the start of the outage. A failure after a long
    /// gap starts another outage.
    fn record_failure(&self) -> Instant {
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
    use crate::{http, instance, model::settings::Settings, tested};

    #[tokio::test]
    async fn a_slow_look_up_does_not_undo_a_change() -> Result<()> {
        // No server listens there.
        let store = tested::store("postgres://nobody:nothing@127.0.0.1:1/none")?;
        let boards = Boards::new(store.reader, Duration::from_secs(1));
        let slug: BoardSlug = "main".parse()?;
        let private = || tested::board("main").map(|board| Arc::new(Board { reading: Reading::Key, ..board }));
        let reading = || boards.last_seen(&slug).map(|board| board.reading);
        let (slow, fast) = (Instant::now(), Instant::now());
        boards.forget(&slug);
        boards.insert(&slug, Arc::new(tested::board("main")?), slow);
        assert_eq!(reading(), None);
        let later = Instant::now() + Duration::from_millis(1);
        boards.insert(&slug, private()?, later);
        boards.insert(&slug, Arc::new(tested::board("main")?), fast);
        assert_eq!(reading(), Some(Reading::Key));
        Ok(())
    }

    #[tokio::test]
    async fn during_an_outage_a_public_board_not_seen_recently_requires_a_key() -> Result<()> {
        let instance = instance::Instance::connect(&Settings::without_server()).await?;
        // The outage began 3 minutes ago. `before`: time from the last look-up of the board to the
        // start of the outage.
        let now = Instant::now();
        let ago = |time: Duration| now.checked_sub(time).unwrap_or(now);
        let outage = Duration::from_mins(3);
        for (slug, before, wanted) in [
            ("seen", Duration::ZERO, Reading::Public),
            ("lately", Duration::from_secs(59), Reading::Public),
            ("long", Duration::from_secs(61), Reading::Key),
        ] {
            let seen_at = ago(outage + before);
            instance.boards.seen.insert(slug.parse()?, (Arc::new(tested::board(slug)?), seen_at));
            *instance.boards.outage() =
                Some(Outage { first_failure_at: ago(outage), last_failure_at: ago(Duration::from_secs(59)) });
            let found = find(&instance.boards, &slug.parse()?).await?;
            assert_eq!(*found, Board { reading: wanted, ..tested::board(slug)? }, "{slug}");
            assert_eq!(instance.boards.requires_key_for_outage(&found), wanted == Reading::Key, "{slug}");
        }
        // No request has failed yet, or the last failure was long ago: this one starts an outage.
        instance.boards.seen.insert("quiet".parse()?, (Arc::new(tested::board("quiet")?), ago(outage)));
        for last in
            [None, Some(Outage { first_failure_at: ago(outage), last_failure_at: ago(Duration::from_secs(61)) })]
        {
            *instance.boards.outage() = last;
            assert_eq!(find(&instance.boards, &"quiet".parse()?).await?.reading, Reading::Key, "{last:?}");
        }
        let private = Board { reading: Reading::Key, ..tested::board("private")? };
        instance.boards.seen.insert("private".parse()?, (Arc::new(private), ago(outage)));

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

        let unknown = find(&instance.boards, &"unknown".parse()?).await;
        assert!(matches!(unknown, Err(Error::Outage(_))), "{unknown:?}");
        instance.shut_down().await;
        Ok(())
    }
}
