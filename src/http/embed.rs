//! `/embed/{board}`: a board for the pages of others, and the script that shows it there. Only pages of the origins that the settings name
//! may show it in a frame.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderMap},
    web::Data,
};
use maud::Markup;
use serde::Deserialize;

use crate::{
    Error, Result,
    http::{
        Api,
        api::{endpoint::Endpoint, text},
        extract::{path::BoardPath, query},
        page::{self, Rows, TopBody},
        pages::{
            asset::ELEMENT,
            embed::{EmbedPage, Look, page as embed_page, problem as problem_page},
            link::Link,
        },
        server::cors::Origin,
    },
    model::period::PeriodSelector,
};

/// What the page may do in its frame: look as its style sheets say, run its scripts, ask this service.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; \
     base-uri 'none'; frame-ancestors";

/// Where the script always is; under its other name it never changes.
const SCRIPT_PATH: &str = "/assets/centile-board.js";

/// How browsers may keep it: what has changed comes to everybody within minutes.
const SCRIPT_KEPT: &str = "public, max-age=300";

const SCRIPT_KEPT_UNCHANGED: &str = "public, max-age=31536000, immutable";

/// Rows of a frame.
const LIMIT_DEFAULT: u32 = 10;

const LIMIT_MAX: u32 = 100;

/// The page.
pub(super) fn endpoints() -> [Endpoint; 1] {
    [Endpoint::new("/embed/{board}").get(show)]
}

/// Its script.
pub(super) fn assets() -> [Endpoint; 2] {
    [Endpoint::new(SCRIPT_PATH).get(script), Endpoint::new("/assets/centile-board.{digest}.js").get(script)]
}

/// What is to be shown, and how.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbedQuery {
    period: Option<String>,
    limit: Option<u64>,
    theme: Option<String>,
    size: Option<String>,
}

/// A board.
async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let page = board(&api, &request).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(page::HTML)
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, policy(&api)));
    Ok(text::made(&request, response, page.into_string()))
}

fn policy(api: &Api) -> String {
    format!("{POLICY} {}", framers(&api.settings.frame_origins))
}

/// What is wrong as a page for a frame, in the look that was asked for, and the policy of it.
pub(super) fn explained(request: &HttpRequest, title: &str, detail: &str) -> Option<(Markup, String)> {
    let api = request.app_data::<Data<Api>>()?;
    let look = query::parse::<EmbedQuery>(request).map_or_else(
        |_| Look::default(),
        |EmbedQuery { theme, size, .. }| Look {
            theme: theme.and_then(|theme| theme.parse().ok()).unwrap_or_default(),
            size: size.and_then(|size| size.parse().ok()).unwrap_or_default(),
        },
    );
    Some((problem_page(title, detail, look), policy(api)))
}

async fn board(api: &Api, request: &HttpRequest) -> Result<Markup> {
    let BoardPath { board } = BoardPath::of(request)?;
    let query: EmbedQuery = query::parse(request)?;
    let look = Look {
        theme: query.theme.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
        size: query.size.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
    };
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    let board = page::public(api, request, &board).await?;
    let selector = match &query.period {
        Some(text) => text.parse()?,
        None => PeriodSelector::Current(page::first_kind(&board)),
    };
    let Rows { top: TopBody { period, players, scores }, stale_for } =
        page::rows(api, &board, &selector, 1, limit).await?;
    let link = Link {
        board: board.slug.to_string(),
        period: query.period,
        from: 1,
        limit: None,
        player: None,
        friends: Vec::new(),
    };
    let page = EmbedPage {
        board: &board,
        link: &link,
        selector: &selector,
        period: &period,
        players,
        limit,
        rows: &scores,
        stale_for,
    };
    Ok(embed_page(&page, look))
}

/// Who may show a page in a frame, as a policy has it (CSP, level 3, 6.4.2).
fn framers(origins: &[Origin]) -> String {
    if origins.is_empty() {
        return "'none'".to_owned();
    }
    let sources = origins.iter().map(|origin| match origin {
        Origin::Any => "*",
        Origin::One(one) => one,
    });
    sources.collect::<Vec<_>>().join(" ")
}

/// The script. A page of another origin runs it as a module, which a browser lets it only where it might read it, too.
async fn script(request: HttpRequest) -> Result<HttpResponse> {
    let (path, unchanged) = (request.path(), ELEMENT.path());
    let is_ours = || path.strip_prefix("/assets/").is_some_and(|name| ELEMENT.is_version_of(name));
    let kept = if path == unchanged {
        SCRIPT_KEPT_UNCHANGED
    } else if path == SCRIPT_PATH {
        SCRIPT_KEPT
    } else if is_ours() {
        "no-cache"
    } else {
        return Err(Error::not_found("file", path));
    };
    let mut response = HttpResponse::Ok();
    response
        .content_type(ELEMENT.media_type)
        .insert_header((header::CACHE_CONTROL, kept))
        .insert_header((header::CONTENT_LOCATION, unchanged))
        .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"));
    Ok(text::file(&request, response, &ELEMENT))
}

/// Whether the policy of a response lets other pages show it in a frame.
pub(super) fn may_be_framed(headers: &HeaderMap) -> bool {
    let policy = headers.get(header::CONTENT_SECURITY_POLICY).and_then(|policy| policy.to_str().ok());
    let framers =
        policy.and_then(|policy| policy.split(';').find_map(|rule| rule.trim().strip_prefix("frame-ancestors")));
    framers.is_some_and(|framers| framers.trim() != "'none'")
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn only_named_origins_may_frame() {
        let origins = |text: &str| text.split(',').map(str::parse).collect::<Result<Vec<Origin>>>();
        for (text, wanted) in [
            ("https://game.example", "https://game.example"),
            ("https://game.example,http://localhost:3000", "https://game.example http://localhost:3000"),
            ("*", "*"),
        ] {
            let framers = framers(&origins(text).unwrap_or_default());
            assert_eq!(framers, wanted);
            assert!(may_be_framed(&with_policy(&framers)));
        }
        assert_eq!(framers(&[]), "'none'");
        assert!(!may_be_framed(&with_policy("'none'")));
        assert!(!may_be_framed(&HeaderMap::new()));
    }

    fn with_policy(framers: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Ok(policy) = HeaderValue::from_str(&format!("{POLICY} {framers}; sandbox")) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        headers
    }
}
