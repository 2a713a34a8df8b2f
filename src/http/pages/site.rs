//! `/` and `/boards/{board}`: the pages for players.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header,
    web::{Data, Path},
};
use futures::future::join_all;
use maud::Markup;
use serde::Deserialize;

use crate::{
    Code, Error, Resource, Result, boards,
    http::{
        api::{
            path::{BoardPath, CohortPath},
            query::{self, Selection},
            top as top_body,
        },
        auth::{caller, rate},
        pages::{
            RankingView, Rows,
            asset::Asset,
            board::{BoardPage, PlayerShown, PlayersFound, page as board_page},
            home::{BoardSummary, page as home_page},
            league,
            link::{Among, FRIENDS_MAX, Link},
            table::Before,
            text,
        },
        server::{Api, endpoint::Endpoint, origin::Origin},
    },
    model::{
        board::{Board, BoardFilter, BoardSlug, PeriodKind},
        friend::FriendsOf,
        league::LeagueState,
        name,
        period::{Period, PeriodSelector, Progress},
        rank::{Distribution, LocalPage, LocalStart, PageStart},
        user::UserId,
    },
    ranking::{
        local, metadata, overview, read,
        search::{self, SearchResult},
        top,
    },
    scoring,
};

/// Content security policy of a page: its own style sheet, script and images, and requests to this
/// service.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// Sources of images in [`POLICY`].
const IMAGES: &str = "img-src 'self'";

pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// Cache policy of a file whose name changes with its content: browsers may keep it for a year.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

const LIMIT_DEFAULT: u32 = 25;
const LIMIT_MAX: u32 = 100;

/// Maximum boards on the home page that are shown with their top. Others are shown by name.
const SUMMARIES_MAX: usize = 12;

/// Boards of a home page.
const HOME_BOARDS: usize = 24;

/// Rows of each top on the home page.
const SUMMARY_ROWS: u32 = 3;

/// Neighbours on each side of the selected player.
const AROUND: u32 = 4;

/// Maximum transactions in the chart of a player's score.
const TRANSACTIONS_MAX: u32 = 200;

/// Maximum snapshots in the chart of a player's progress.
const SNAPSHOTS_MAX: u64 = 60;

pub(crate) fn endpoints() -> [Endpoint; 4] {
    [
        Endpoint::new("/").get(home),
        Endpoint::new("/boards/{board}").get(show),
        Endpoint::new("/boards/{board}/league").get(show_league),
        Endpoint::new("/boards/{board}/league/{cohort_id}").get(show_cohort),
    ]
}

pub(crate) fn assets() -> [Endpoint; 1] {
    [Endpoint::new("/assets/{file}").get(asset)]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardQuery {
    period: Option<String>,
    segment: Option<String>,
    from: Option<u64>,
    limit: Option<u64>,
    player: Option<String>,
    /// Beginning of a player's name or id.
    search: Option<String>,
    among: Option<String>,
    #[serde(default)]
    friends: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeQuery {
    /// The last board of the page before.
    after: Option<String>,
}

/// Shows the home page, with public boards.
async fn home(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    Ok(answer(&request, boards(&api, &request).await?, &[]))
}

async fn boards(api: &Api, request: &HttpRequest) -> Result<Markup> {
    let HomeQuery { after } = query::parse(request)?;
    let filter = BoardFilter { limit: Some(HOME_BOARDS), ..BoardFilter::default() };
    let found = boards::readable(&api.instance.store.reader, None, filter, after.as_deref()).await;
    let (boards, next) = found.map_err(|error| error.in_field("after"))?;
    rate::charge(request, boards.len())?;
    let tops = boards.iter().take(SUMMARIES_MAX).map(async |board| {
        let rows = rows(api, board, &board.default_selector(), 1, SUMMARY_ROWS).await;
        if_known(rows).unwrap_or_else(|error| {
            tracing::error!(%error, board = %board.slug, "cannot show a top on the home page");
            None
        })
    });
    let mut tops = join_all(tops).await.into_iter();
    let summaries: Vec<_> = boards.iter().map(|board| BoardSummary { board, top: tops.next().flatten() }).collect();
    Ok(home_page(&summaries, next.as_deref()))
}

async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    Ok(match Box::pin(one_board(&api, &request)).await? {
        Shown::Page(page) => answer(&request, page, &api.settings.avatar_origins),
        Shown::At(address) => HttpResponse::SeeOther().insert_header((header::LOCATION, address)).finish(),
    })
}

/// Response to a request for a board's page.
enum Shown {
    Page(Markup),
    /// The page at another URL.
    At(String),
}

/// Shows the divisions of a board's league.
async fn show_league(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let BoardPath { board } = BoardPath::from_request(&request)?;
    query::none(&request)?;
    let board = public(&api, &request, &board).await?;
    let overview = api.instance.store.reader.league_overview(&board).await?;
    Ok(answer(&request, league::overview_page(&board, &overview), &[]))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CohortQuery {
    /// The player whose row is highlighted.
    player: Option<String>,
}

/// Shows a cohort.
async fn show_cohort(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let BoardPath { board } = BoardPath::from_request(&request)?;
    let CohortPath { cohort_id } = CohortPath::from_request(&request)?;
    let CohortQuery { player } = query::parse(&request)?;
    let board = public(&api, &request, &board).await?;
    let state = api.instance.store.reader.league_state(&board, None, None, Some(cohort_id)).await?;
    Ok(answer(&request, league::cohort_page(&board, &state, player.as_deref()), &[]))
}

async fn one_board(api: &Api, request: &HttpRequest) -> Result<Shown> {
    let BoardPath { board } = BoardPath::from_request(request)?;
    let query: BoardQuery = query::parse(request)?;
    let board = public(api, request, &board).await?;
    // Parse the parameters into the link from which all links of the page derive.
    let from = query::bounded("from", query.from, 1, 1, i64::MAX.unsigned_abs())?;
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    let friends = query.friends.len();
    if friends > FRIENDS_MAX {
        return Err(Error::invalid("friends", format!("must have at most {FRIENDS_MAX} ids, not {friends}")));
    }
    let segment = query.segment.filter(|segment| !segment.is_empty());
    let selector = selector(&board, query.period.as_deref(), segment.as_deref())?;
    let link = Link {
        board: board.slug.to_string(),
        period: query.period,
        segment,
        from,
        limit: query.limit.map(|_| limit),
        player: query.player.filter(|player| !player.is_empty()),
        among: query.among.map(|text| name::parse("among", &text)).transpose()?.unwrap_or_default(),
        friends: query.friends,
    };
    // Search for players. The exact id of a player leads to that player.
    let found = match query.search.filter(|text| !text.trim().is_empty()) {
        None => None,
        Some(text) => {
            match if_known(search::players(api.instance.read_router.current(), &board, &selector, &text).await)? {
                Some(SearchResult::Id(user)) => return Ok(Shown::At(link.player(Some(user.as_str())).href())),
                Some(SearchResult::Players { chosen, is_cut }) => {
                    Some(PlayersFound { text, chosen: Some(*chosen), is_cut })
                }
                None => Some(PlayersFound { text, chosen: None, is_cut: false }),
            }
        }
    };
    let user: Option<UserId> =
        link.player.as_deref().map(str::parse).transpose().map_err(|error: Error| error.in_field("player"))?;
    let friends: Vec<UserId> =
        link.friends.iter().map(|id| id.parse()).collect::<Result<_>>().map_err(|error| error.in_field("friends"))?;

    // Each part is exact for its own version. The page does not reconcile them.
    let instance = &api.instance;
    let among_friends = user.as_ref().filter(|_| link.among == Among::Friends);
    let from = if among_friends.is_some() { 1 } else { from };
    let (rows, local, periods, distribution, player, progress, league, chosen) = futures::join!(
        rows(api, &board, &selector, from, limit),
        friends_of(api, &board, &selector, among_friends, &link, limit),
        overview::periods(instance.read_router.current(), &board),
        overview::distribution(instance.read_router.current(), &board, &selector),
        player(api, &board, &selector, user.as_ref()),
        progress(api, &board, user.as_ref()),
        league_of(api, &board, user.as_ref()),
        async {
            if friends.is_empty() {
                Ok(None)
            } else {
                read::chosen(instance.read_router.current(), &board, &selector, &friends).await.map(Some)
            }
        },
    );
    // The page needs some of these parts. It leaves out the others while they cannot be read.
    let (rows, player) = (rows?, player?);
    let is_unknown = matches!(player, Some(PlayerShown::NoScore { is_known: false }));
    let local = if_known(local)?.flatten().filter(|_| !is_unknown);
    // A page of friends that cannot be shown is the first page of all players.
    let link = if link.among == Among::Friends && local.is_none() { link.among(Among::All) } else { link };
    let (periods, friends) = (if_known(periods)?, if_known(chosen)?.flatten());
    // A cached distribution may belong to the previous period, or to the time before the first
    // score.
    let is_of_rows = |spread: &Distribution| {
        spread.header.period.name() == rows.period().name() && (spread.header.players == 0) == (rows.players() == 0)
    };
    let distribution = match if_known(distribution)? {
        Some(spread) if !is_of_rows(&spread) => {
            if_known(read::distribution(instance.read_router.current(), &board, &selector).await)?.map(Arc::new)
        }
        spread => spread,
    };
    let distribution = distribution.filter(|spread| spread.header.period.name() == rows.period().name());
    let periods = periods.as_deref().unwrap_or_default();
    // Read what depends on the rows: their earlier positions, and the segments of their period.
    let before = before(api, &board, &selector, &rows, periods).await?;
    let segments = match board.segments.as_slice() {
        [] => None,
        _ => if_known(overview::segments(instance.read_router.current(), &board, rows.period()).await)?,
    };
    Ok(Shown::Page(board_page(&BoardPage {
        view: RankingView {
            board: &board,
            link: &link,
            selector: &selector,
            limit,
            rows: &rows,
            avatar_origins: &api.settings.avatar_origins,
        },
        periods,
        segments: segments.as_deref().unwrap_or_default(),
        distribution: distribution.as_deref(),
        before,
        player,
        progress: progress?,
        league: league?,
        found,
        local,
        friends,
    })))
}

/// Finds a board that the caller may read. A browser cannot send a key, so the error for other
/// boards says why they have no page.
pub(crate) async fn public(api: &Api, request: &HttpRequest, slug: &BoardSlug) -> Result<Arc<Board>> {
    caller::readable(api, request, slug).await.map_err(|error| match error {
        Error::Unauthorized { .. } => {
            Error::unauthorized(Code::KeyRequired, "this board has no page: it can only be read with a key")
        }
        other => other,
    })
}

/// Returns the selector of the period and segment that a page was requested for.
pub(crate) fn selector(board: &Board, period: Option<&str>, segment: Option<&str>) -> Result<PeriodSelector> {
    Ok(Selection::parse(period, segment)?.on(board))
}

/// Reads rows from a position. The first rows come from the cache of tops, which works while the
/// database cannot be reached.
pub(crate) async fn rows(api: &Api, board: &Board, selector: &PeriodSelector, from: u64, limit: u32) -> Result<Rows> {
    if from == 1 {
        let top = top::top(api.instance.read_router.current(), board, selector, limit, top_body::render).await?;
        return Ok(Rows { page: top.page, stale_for: top.stale_for });
    }
    let page =
        read::page(api.instance.read_router.current(), board, selector, PageStart::Position(from), limit).await?;
    Ok(Rows { page: page.into(), stale_for: None })
}

async fn player(
    api: &Api,
    board: &Board,
    selector: &PeriodSelector,
    user: Option<&UserId>,
) -> Result<Option<PlayerShown>> {
    let Some(user) = user else { return Ok(None) };
    let instance = &api.instance;
    let (mut standing, transactions) = futures::join!(
        read::standing(instance.read_router.current(), board, selector, user, AROUND),
        // The chart needs voids and resets to leave out what they cancel.
        scoring::history(&instance.store.reader, board, user, TRANSACTIONS_MAX, None, true)
    );
    let transactions = transactions.map(|(transactions, _)| transactions).unwrap_or_default();
    if let Ok(standing) = &mut standing
        && let Err(error) =
            metadata::add(instance.read_router.current(), board, &standing.header, [&mut standing.player]).await
    {
        tracing::warn!(%error, board = %board.slug, "cannot read the metadata of a page's player");
    }
    Ok(Some(match standing {
        Ok(standing) => PlayerShown::Standing(Box::new(standing), transactions),
        // Only an unknown player comes without a hint.
        Err(Error::NotFound { what: what @ (Resource::User | Resource::Score), .. }) => {
            match caller::readable_profile(api, None, user).await {
                Err(error) if error.is_temporary() => PlayerShown::Unavailable,
                profile => PlayerShown::NoScore { is_known: what == Resource::Score && profile.is_ok() },
            }
        }
        Err(error) if error.is_temporary() => PlayerShown::Unavailable,
        Err(error) => return Err(error),
    }))
}

/// Reads the ranking of a player and the player's friends. An unknown player has none.
async fn friends_of(
    api: &Api,
    board: &Board,
    selector: &PeriodSelector,
    user: Option<&UserId>,
    link: &Link,
    limit: u32,
) -> Result<Option<LocalPage>> {
    let Some(user) = user else { return Ok(None) };
    let friends = FriendsOf { user_id: user.clone(), mutual: false };
    let start = LocalStart::Page(PageStart::Position(link.from));
    match local::page(api.instance.read_router.current(), board, selector, &friends, &start, limit).await {
        Err(Error::NotFound { what: Resource::User, .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// Reads the selected player's progress, which only boards with snapshots have.
async fn progress(api: &Api, board: &Board, user: Option<&UserId>) -> Result<Vec<Progress>> {
    let Some(user) = user.filter(|_| board.snapshots.is_some()) else { return Ok(Vec::new()) };
    match api.instance.read_router.current().reader.progress(board, user.as_str(), SNAPSHOTS_MAX).await {
        Err(Error::NotFound { .. }) => Ok(Vec::new()),
        read => Ok(if_known(read)?.unwrap_or_default()),
    }
}

/// Reads whether the board has a league, and the selected player's place in it.
async fn league_of(api: &Api, board: &Board, user: Option<&UserId>) -> Result<Option<Option<LeagueState>>> {
    let reader = &api.instance.store.reader;
    let read = match user {
        Some(user) => reader.league_state(board, Some(user), None, None).await.map(Some),
        None => reader.league_overview(board).await.map(|_| None),
    };
    match read {
        Err(Error::NotFound { what: Resource::User, .. }) => Ok(Some(None)),
        Err(Error::NotFound { .. }) => Ok(None),
        read => if_known(read),
    }
}

/// Reads where the players of these all-time rows were in the newest snapshot.
async fn before(
    api: &Api,
    board: &Board,
    selector: &PeriodSelector,
    rows: &Rows,
    periods: &[Period],
) -> Result<Option<Before>> {
    let is_compared = board.snapshots.is_some() && *selector == PeriodSelector::default() && rows.stale_for.is_none();
    // Periods come newest first.
    let newest = periods.iter().find(|period| period.kind == PeriodKind::Snapshot);
    let Some(snapshot) = newest.filter(|_| is_compared) else { return Ok(None) };
    let selector = PeriodSelector::Labelled(PeriodKind::Snapshot, snapshot.label.clone());
    let users: Vec<UserId> = rows.rows().iter().map(|row| row.user_id.parse()).collect::<Result<_>>()?;
    match if_known(read::chosen(api.instance.read_router.current(), board, &selector, &users).await) {
        Ok(Some(chosen)) => {
            let positions = chosen.rows.into_iter().map(|row| (row.user_id, row.position)).collect();
            Ok(Some(Before { snapshot: snapshot.clone(), positions }))
        }
        // The board may keep no archive of a snapshot.
        Ok(None) | Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns `None` if the read failed with a temporary error.
fn if_known<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_temporary() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Builds the response for a page with avatars from these origins.
fn answer(request: &HttpRequest, page: Markup, avatar_origins: &[Origin]) -> HttpResponse {
    let images: Vec<String> =
        [IMAGES.to_owned()].into_iter().chain(avatar_origins.iter().map(ToString::to_string)).collect();
    let policy = POLICY.replace(IMAGES, &images.join(" "));
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header((header::CONTENT_TYPE, HTML));
    response.insert_header((header::CONTENT_SECURITY_POLICY, policy));
    text::made(request, response, page.into_string())
}

/// Responds with a file that pages load.
async fn asset(request: HttpRequest, name: Path<String>) -> Result<HttpResponse> {
    let asset = Asset::find(&name).ok_or_else(|| Error::not_found(Resource::Path, format!("/assets/{name}")))?;
    let cache_control = if request.path() == asset.path() { IMMUTABLE } else { "no-cache" };
    let mut response = HttpResponse::Ok();
    response.content_type(asset.media_type).insert_header((header::CACHE_CONTROL, cache_control));
    Ok(text::file(&request, response, asset))
}
