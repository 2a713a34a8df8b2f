//! `/` and `/boards/{board}`: what people look at. Whatever is wrong, they are answered with a page.

use std::{sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::ErrorInternalServerError,
    http::header::{self, HeaderValue},
    middleware::Next,
    web::{Data, Path},
};
use futures::future::join_all;
use maud::Markup;
use serde::Deserialize;

use crate::{
    Error, Result, boards,
    http::{
        Api,
        api::{endpoint::Endpoint, problem::Problem, text, top as top_body},
        embed,
        extract::{caller, path::BoardPath, query},
        ops,
        pages::{
            asset::Asset,
            board::{BoardPage, PlayerShown, page as board_page},
            home::{Glance, Leaders, page as home_page},
            link::{FRIENDS_MAX, Link},
            problem::page as problem_page,
        },
    },
    model::{
        board::{Board, BoardSlug, PeriodKind, Reading},
        period::{Period, PeriodSelector},
        rank::{Distribution, PageStart, Row},
        user::UserId,
    },
    ranking::{overview, read, top},
    scoring,
};

/// What a page may do: look as its style sheet says, run its script, ask this service.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// Media type of pages.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// A browser uses a file without asking for a year: its name changes with what is in it.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Rows of a page.
const LIMIT_DEFAULT: u32 = 25;

const LIMIT_MAX: u32 = 100;

/// Boards whose tops the first page shows; of others, the names.
const GLANCES: usize = 12;

/// Players of each.
const LEADERS: u32 = 3;

/// Players above and below the one who is looked at.
const AROUND: u32 = 4;

/// Acts that a player's curve is made of.
const ACTS: u32 = 200;

/// Path of the pages that other sites show in a frame.
const FRAMES: &str = "/embed/";

/// The pages.
pub(super) fn endpoints() -> [Endpoint; 2] {
    [Endpoint::new("/").get(home), Endpoint::new("/boards/{board}").get(show)]
}

/// The files of pages.
pub(super) fn assets() -> [Endpoint; 1] {
    [Endpoint::new("/assets/{file}").get(asset)]
}

/// What a board's page is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardQuery {
    period: Option<String>,
    from: Option<u64>,
    limit: Option<u64>,
    player: Option<String>,
    #[serde(default)]
    friends: Vec<String>,
}

/// What is read of a top as it is cached.
#[derive(Debug, Deserialize)]
pub(super) struct TopBody {
    pub(super) period: Period,
    pub(super) players: u64,
    pub(super) scores: Vec<Row>,
}

/// Rows of a ranking, and how long ago they were right if that is no longer certain.
pub(super) struct Rows {
    pub(super) top: TopBody,
    pub(super) stale_for: Option<Duration>,
}

/// The boards there are.
async fn home(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    Ok(answer(&request, boards(&api, &request).await?))
}

async fn boards(api: &Api, request: &HttpRequest) -> Result<Markup> {
    query::none(request)?;
    let mut boards = boards::list(&api.instance.store).await?;
    boards.retain(|board| board.reading == Reading::Public);
    let tops = boards.iter().take(GLANCES).map(async |board| {
        let rows = rows(api, board, &PeriodSelector::Current(first_kind(board)), 1, LEADERS).await;
        let Rows { top: TopBody { period, players, scores }, stale_for } = if_known(rows).unwrap_or_else(|error| {
            tracing::error!(%error, board = %board.slug, "the page of all boards lacks a top");
            None
        })?;
        Some(Leaders { period, players, rows: scores, stale_for })
    });
    let mut tops = join_all(tops).await.into_iter();
    let glances: Vec<_> = boards.iter().map(|board| Glance { board, top: tops.next().flatten() }).collect();
    Ok(home_page(&glances))
}

/// A board.
async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    Ok(answer(&request, one_board(&api, &request).await?))
}

async fn one_board(api: &Api, request: &HttpRequest) -> Result<Markup> {
    let BoardPath { board } = BoardPath::of(request)?;
    let query: BoardQuery = query::parse(request)?;
    let board = public(api, request, &board).await?;
    let from = query::bounded("from", query.from, 1, 1, i64::MAX.unsigned_abs())?;
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    if query.friends.len() > FRIENDS_MAX {
        return Err(Error::invalid(
            "friends",
            format!("must be at most {FRIENDS_MAX} ids, not {}", query.friends.len()),
        ));
    }
    let selector = match &query.period {
        Some(text) => text.parse()?,
        None => PeriodSelector::Current(first_kind(&board)),
    };
    let link = Link {
        board: board.slug.to_string(),
        period: query.period,
        from,
        limit: query.limit.map(|_| limit),
        player: query.player.filter(|player| !player.is_empty()),
        friends: query.friends,
    };
    let user: Option<UserId> =
        link.player.as_deref().map(str::parse).transpose().map_err(|error: Error| error.in_field("player"))?;
    let friends: Vec<UserId> =
        link.friends.iter().map(|id| id.parse()).collect::<Result<_>>().map_err(|error| error.in_field("friends"))?;

    // Each part is exact for a state of its own: of these the page is put together as it comes.
    let instance = &api.instance;
    let (rows, periods, distribution, player, chosen) = futures::join!(
        rows(api, &board, &selector, from, limit),
        overview::periods(&instance.rankings, &board),
        overview::distribution(&instance.rankings, &board, &selector),
        player(api, &board, &selector, user.as_ref()),
        async {
            if friends.is_empty() {
                Ok(None)
            } else {
                read::chosen(&instance.rankings, &board, &selector, &friends).await.map(Some)
            }
        },
    );
    let Rows { top: TopBody { period, players, scores }, stale_for } = rows?;
    let (periods, friends) = (if_known(periods)?, if_known(chosen)?.flatten());
    // What is some seconds old may be of the period before, or of one in which nobody had scored.
    let is_of_rows = |spread: &Distribution| {
        spread.header.period.name() == period.name() && (spread.header.players == 0) == (players == 0)
    };
    let distribution = match if_known(distribution)? {
        Some(spread) if !is_of_rows(&spread) => {
            if_known(read::distribution(&instance.rankings, &board, &selector).await)?.map(Arc::new)
        }
        spread => spread,
    };
    let distribution = distribution.filter(|spread| spread.header.period.name() == period.name());
    Ok(board_page(&BoardPage {
        board: &board,
        link: &link,
        selector: &selector,
        period: &period,
        players,
        limit,
        rows: &scores,
        stale_for,
        periods: periods.as_deref().unwrap_or_default(),
        distribution: distribution.as_deref(),
        player: player?,
        friends,
    }))
}

/// The board of this name. A browser has no key to show: who reads with one is told why there is nothing to see.
pub(super) async fn public(api: &Api, request: &HttpRequest, slug: &BoardSlug) -> Result<Arc<Board>> {
    caller::readable(api, request, slug).await.map_err(|error| match error {
        Error::Unauthorized(_) => {
            Error::Unauthorized("this board is read with a key, by programs; it has no page".into())
        }
        other => other,
    })
}

/// The kind of period that is shown first.
pub(super) fn first_kind(board: &Board) -> PeriodKind {
    board.periods.first().copied().unwrap_or(PeriodKind::AllTime)
}

/// Rows from a position. The first ones come from the cache of tops, which has them also while the database is away.
pub(super) async fn rows(api: &Api, board: &Board, selector: &PeriodSelector, from: u64, limit: u32) -> Result<Rows> {
    let broken = |error| Error::Internal(format!("a top list cannot be read: {error}"));
    if from == 1 {
        let top = top::top(&api.instance.rankings, board, selector, limit, top_body::render).await?;
        return Ok(Rows { top: serde_json::from_str(&top.body).map_err(broken)?, stale_for: top.stale_for });
    }
    let page = read::page(&api.instance.rankings, board, selector, PageStart::Position(from), limit).await?;
    let top = TopBody { period: page.header.period, players: page.header.players, scores: page.rows };
    Ok(Rows { top, stale_for: None })
}

/// The player who is looked at.
async fn player(
    api: &Api,
    board: &Board,
    selector: &PeriodSelector,
    user: Option<&UserId>,
) -> Result<Option<PlayerShown>> {
    let Some(user) = user else { return Ok(None) };
    let instance = &api.instance;
    let (standing, acts) = futures::join!(
        read::standing(&instance.rankings, board, selector, user, AROUND),
        scoring::history(&instance.store, board, user, ACTS, None)
    );
    Ok(Some(match standing {
        Ok(standing) => PlayerShown::Standing(Box::new(standing), acts.map(|(acts, _)| acts).unwrap_or_default()),
        // The hint is for players who are known.
        Err(Error::NotFound { what: "user", hint, .. }) => PlayerShown::Nowhere { is_known: hint.is_some() },
        Err(Error::Unavailable { .. }) => PlayerShown::Unknown,
        Err(error) => return Err(error),
    }))
}

/// `None` for what cannot be read while the database is away.
fn if_known<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Error::Unavailable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A page as it is sent.
fn answer(request: &HttpRequest, page: Markup) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-cache")).insert_header((header::CONTENT_TYPE, HTML));
    response.insert_header((header::CONTENT_SECURITY_POLICY, POLICY));
    text::made(request, response, page.into_string())
}

/// Whether the responses at this path are pages, also for errors.
pub(super) fn is_page(path: &str) -> bool {
    path == "/" || ["/boards", FRAMES, ops::PATH].iter().any(|prefix| path.starts_with(prefix))
}

/// Answers an error with a page, for requests of which [`is_page`] holds.
pub(super) async fn explain(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, String>>, actix_web::Error> {
    let mut response = next.call(request).await?;
    let problem = response.response_mut().extensions_mut().remove::<Problem>();
    let Some(Problem { status, title, detail, .. }) = problem else { return Ok(response.map_into_left_body()) };
    let is_frame = response.request().path().starts_with(FRAMES);
    let framed = if is_frame { embed::explained(response.request(), title, &detail) } else { None };
    let (page, policy) = match framed {
        Some((page, policy)) => (page, HeaderValue::try_from(policy).map_err(ErrorInternalServerError)?),
        None => (problem_page(status, title, &detail), HeaderValue::from_static(POLICY)),
    };
    Ok(response.map_body(|head, _| {
        head.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
        head.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        EitherBody::right(page.into_string())
    }))
}

/// A file that pages ask for.
async fn asset(request: HttpRequest, name: Path<String>) -> Result<HttpResponse> {
    let asset = Asset::find(&name).ok_or_else(|| Error::not_found("file", format!("/assets/{name}")))?;
    let kept = if request.path() == asset.path() { FOR_EVER } else { "no-cache" };
    let mut response = HttpResponse::Ok();
    response.content_type(asset.media_type).insert_header((header::CACHE_CONTROL, kept));
    Ok(text::file(&request, response, asset))
}
