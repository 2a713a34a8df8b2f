//! `/embed/{board}`: a board in a frame on other sites' pages, and the script that embeds it. Only
//! pages of the origins in the settings may embed it.

mod view;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderMap},
    web::Data,
};
use maud::Markup;
use serde::Deserialize;

use crate::{
    Error, Resource, Result,
    http::{
        api::{path::BoardPath, query},
        pages::{
            RankingView,
            asset::ELEMENT,
            embed::view::{Appearance, page as embed_page, problem as problem_page},
            link::{Among, Link},
            site, text,
        },
        server::{Api, endpoint::Endpoint, origin::Origin},
    },
    model::name,
};

/// Content security policy of the page in the frame: its own style sheets and scripts, and requests
/// to this service.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; \
     base-uri 'none'; frame-ancestors";

/// Stable path of the script. Its other path contains a digest and never changes content.
const SCRIPT_PATH: &str = "/assets/centile-board.js";

/// Cache policy at the stable path: a new version reaches all pages within minutes.
const SCRIPT_CACHE_CONTROL: &str = "public, max-age=300";

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const LIMIT_DEFAULT: u32 = 10;
const LIMIT_MAX: u32 = 100;

pub(crate) fn endpoints() -> [Endpoint; 1] {
    [Endpoint::new("/embed/{board}").get(show)]
}

pub(crate) fn assets() -> [Endpoint; 2] {
    [Endpoint::new(SCRIPT_PATH).get(script), Endpoint::new("/assets/centile-board.{digest}.js").get(script)]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmbedQuery {
    period: Option<String>,
    segment: Option<String>,
    limit: Option<u64>,
    theme: Option<String>,
    size: Option<String>,
}

async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let page = board(&api, &request).await?;
    let mut response = HttpResponse::Ok();
    response
        .content_type(site::HTML)
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::CONTENT_SECURITY_POLICY, policy(&api)));
    Ok(text::made(&request, response, page.into_string()))
}

fn policy(api: &Api) -> String {
    format!("{POLICY} {}", framers(&api.settings.frame_origins))
}

/// Renders a problem as a page for the frame, in the requested appearance, and returns it with its
/// policy.
pub(crate) fn problem(request: &HttpRequest, title: &str, detail: &str) -> Option<(Markup, String)> {
    let api = request.app_data::<Data<Api>>()?;
    let appearance = query::parse::<EmbedQuery>(request).map_or_else(
        |_| Appearance::default(),
        |EmbedQuery { theme, size, .. }| Appearance {
            theme: theme.and_then(|theme| theme.parse().ok()).unwrap_or_default(),
            size: size.and_then(|size| size.parse().ok()).unwrap_or_default(),
        },
    );
    Some((problem_page(title, detail, appearance), policy(api)))
}

async fn board(api: &Api, request: &HttpRequest) -> Result<Markup> {
    let BoardPath { board } = BoardPath::from_request(request)?;
    let query: EmbedQuery = query::parse(request)?;
    let appearance = Appearance {
        theme: query.theme.as_deref().map(|text| name::parse("theme", text)).transpose()?.unwrap_or_default(),
        size: query.size.as_deref().map(|text| name::parse("size", text)).transpose()?.unwrap_or_default(),
    };
    let limit = query::bounded("limit", query.limit, LIMIT_DEFAULT, 1, LIMIT_MAX)?;
    let board = site::public(api, request, &board).await?;
    let selector = site::selector(&board, query.period.as_deref(), query.segment.as_deref())?;
    let rows = site::rows(api, &board, &selector, 1, limit).await?;
    let link = Link {
        board: board.slug.to_string(),
        period: query.period,
        segment: query.segment,
        from: 1,
        limit: None,
        player: None,
        among: Among::All,
        friends: Vec::new(),
    };
    let view = RankingView { board: &board, link: &link, selector: &selector, limit, rows: &rows, avatar_origins: &[] };
    Ok(embed_page(view, appearance))
}

/// Returns the origins that may embed the page, in the syntax of a policy (CSP, level 3, 6.4.2).
fn framers(origins: &[Origin]) -> String {
    if origins.is_empty() {
        return "'none'".to_owned();
    }
    origins.iter().map(Origin::to_string).collect::<Vec<_>>().join(" ")
}

/// Responds with the script. Browsers run a module of another origin only if CORS lets the page
/// read it.
async fn script(request: HttpRequest) -> Result<HttpResponse> {
    let (path, versioned) = (request.path(), ELEMENT.path());
    let is_ours = || path.strip_prefix("/assets/").is_some_and(|name| ELEMENT.is_version_of(name));
    let cache_control = if path == versioned {
        IMMUTABLE
    } else if path == SCRIPT_PATH {
        SCRIPT_CACHE_CONTROL
    } else if is_ours() {
        "no-cache"
    } else {
        return Err(Error::not_found(Resource::Path, path));
    };
    let mut response = HttpResponse::Ok();
    response
        .content_type(ELEMENT.media_type)
        .insert_header((header::CACHE_CONTROL, cache_control))
        .insert_header((header::CONTENT_LOCATION, versioned))
        .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"));
    Ok(text::file(&request, response, &ELEMENT))
}

/// Returns whether the policy of a response lets other pages show it in a frame.
pub(crate) fn may_be_framed(headers: &HeaderMap) -> bool {
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
