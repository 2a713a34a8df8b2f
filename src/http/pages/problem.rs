//! Errors as pages.

use actix_web::{
    Error,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::ErrorInternalServerError,
    http::header::{self, HeaderValue},
    middleware::Next,
};
use maud::{Markup, html};

use crate::http::{
    auth::caller::PASSWORD_PATH,
    pages::{
        document, embed,
        site::{HTML, POLICY},
    },
    server::problem::Problem,
};

/// Path of the pages that other sites show in a frame.
const FRAMES: &str = "/embed/";

/// Renders an error with a link to all boards.
fn page(status: u16, title: &str, detail: &str) -> Markup {
    let main = html! {
        p.status { (status) }
        h1 { (title) }
        p.detail { (detail) }
        @if status == 404 { p { "Check the address, or choose one of the boards." } }
        p { a href="/" { "All boards" } }
    };
    document(&format!("{title} · Centile"), &main)
}

/// Returns whether responses at this path are pages, also for errors.
pub(crate) fn is_page(path: &str) -> bool {
    path == "/" || ["/boards", FRAMES, PASSWORD_PATH].iter().any(|prefix| path.starts_with(prefix))
}

/// Replaces a problem document by a page, for paths where [`is_page`] holds.
pub(crate) async fn explain(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, String>>, Error> {
    let mut response = next.call(request).await?;
    let problem = response.response_mut().extensions_mut().remove::<Problem>();
    let Some(Problem { status, title, detail, .. }) = problem else { return Ok(response.map_into_left_body()) };
    let is_frame = response.request().path().starts_with(FRAMES);
    let framed = if is_frame { embed::problem(response.request(), title, &detail) } else { None };
    let (page, policy) = match framed {
        Some((page, policy)) => (page, HeaderValue::try_from(policy).map_err(ErrorInternalServerError)?),
        None => (page(status, title, &detail), HeaderValue::from_static(POLICY)),
    };
    Ok(response.map_body(|head, _| {
        head.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
        head.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        EitherBody::right(page.into_string())
    }))
}
