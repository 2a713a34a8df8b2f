//! The top of a ranking. Its body is rendered once and cached whole; clients revalidate it with its
//! `ETag`.

use std::sync::Arc;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, ContentType},
    web::Bytes,
};
use serde::Serialize;

use crate::{
    Error, Result,
    http::{
        api::{
            ranking::{Extras, PageResponse, text_etag},
            reply,
        },
        server::Api,
    },
    model::{
        board::{Board, Reading},
        period::PeriodSelector,
        rank::Page,
    },
    ranking::{
        rankings::Rankings,
        top::{self, Top},
    },
};

/// Responds with the first `limit` players, or with 304 if `request` names their `ETag`. With extras,
/// the body of the cached page is rendered for this request.
pub(crate) async fn answer(
    api: &Api,
    rankings: &Rankings,
    request: &HttpRequest,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    extras: Extras,
) -> Result<HttpResponse> {
    let mut top = top::top(rankings, board, selector, limit, render).await?;
    if extras != Extras::default() {
        let mut page = Page::clone(&top.page);
        extras.add((api, request), rankings, board, &page.header, &mut page.rows).await?;
        let mut response = PageResponse::new(board, &page);
        if extras.text {
            response.add_text(&board.presentation.score_format);
            top.etag = text_etag(&top.etag, board);
        }
        // No entity tag: it would not change with the profiles.
        if extras.profile && top.stale_for.is_none() {
            return reply::untagged(top.answered_by, &response);
        }
        top.body = json(&response)?.into();
    }
    respond(request, board.reading, selector, &top)
}

/// Responds with the first `limit` players in the format of `body`, rendered for each request.
pub(crate) async fn answer_as(
    rankings: &Rankings,
    request: &HttpRequest,
    board: &Board,
    selector: &PeriodSelector,
    limit: u32,
    body: impl FnOnce(&Page) -> Result<String>,
) -> Result<HttpResponse> {
    let mut top = top::top(rankings, board, selector, limit, render).await?;
    top.body = body(&top.page)?.into();
    respond(request, board.reading, selector, &top)
}

/// Renders the body to cache.
pub(crate) fn render(board: &Board, page: &Page) -> Result<String> {
    json(&PageResponse::new(board, page))
}

pub(crate) fn json(response: &impl Serialize) -> Result<String> {
    serde_json::to_string(response).map_err(|error| Error::Internal(format!("cannot write a top as JSON: {error}")))
}

/// Responds to `request` with `top`.
///
/// A stale top is marked and sent whole, without an `ETag`: its tag belongs to the body without the
/// mark.
fn respond(request: &HttpRequest, reading: Reading, selector: &PeriodSelector, top: &Top) -> Result<HttpResponse> {
    let members =
        top.body.strip_prefix('{').ok_or_else(|| Error::Internal("a top was not rendered as a JSON object".into()))?;
    if let Some(age) = top.stale_for {
        let seconds = age.as_secs();
        return Ok(HttpResponse::Ok()
            .insert_header(ContentType::json())
            .insert_header((header::CACHE_CONTROL, reply::lifetime(reading, selector, false)))
            .insert_header((header::AGE, seconds))
            .body(format!(r#"{{"stale":true,"stale_for_seconds":{seconds},{members}"#)));
    }
    reply::tagged(request, &top.etag, reply::lifetime(reading, selector, top.is_closed), top.answered_by, || {
        Ok(Bytes::from_owner(SharedBody(Arc::clone(&top.body))))
    })
}

/// A body shared by all responses, however slowly clients read it.
struct SharedBody(Arc<str>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::{
        body::{MessageBody as _, to_bytes},
        http::StatusCode,
        test::TestRequest,
    };

    use super::*;
    use crate::model::rank::{AnsweredBy, Header};

    fn top(stale_for: Option<Duration>) -> Top {
        Top {
            page: Arc::new(Page { header: Header::empty(), rows: Vec::new(), next: None }),
            body: r#"{"board":"arena","scores":[]}"#.into(),
            etag: "7-12.4-10".into(),
            is_closed: false,
            answered_by: AnsweredBy::Sql,
            stale_for,
        }
    }

    fn status_with(known: &str) -> StatusCode {
        let request = TestRequest::default().insert_header((header::IF_NONE_MATCH, known)).to_http_request();
        respond(&request, Reading::Public, &PeriodSelector::default(), &top(None))
            .map_or(StatusCode::INTERNAL_SERVER_ERROR, |response| response.status())
    }

    #[test]
    fn a_matching_tag_gets_304() {
        for known in ["\"7-12.4-10\"", "W/\"7-12.4-10\"", "\"other\", \"7-12.4-10\"", "*"] {
            assert_eq!(status_with(known), StatusCode::NOT_MODIFIED, "{known}");
        }
        for other in ["\"7-12.4-11\"", "7-12.4-10", "\"\"", ","] {
            assert_eq!(status_with(other), StatusCode::OK, "{other}");
        }
    }

    #[actix_web::test]
    async fn a_stale_top_is_marked_and_sent_whole() -> Result<()> {
        let request = TestRequest::default().insert_header((header::IF_NONE_MATCH, "*")).to_http_request();
        let response =
            respond(&request, Reading::Public, &PeriodSelector::default(), &top(Some(Duration::from_millis(3_900))))?;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers().get(header::AGE), Some(&3.into()));
        assert!(!response.headers().contains_key(header::ETAG));
        let body = to_bytes(response.into_body()).await.unwrap_or_default();
        assert_eq!(body, r#"{"stale":true,"stale_for_seconds":3,"board":"arena","scores":[]}"#);
        Ok(())
    }

    #[test]
    fn responses_share_one_body() -> Result<()> {
        let top = top(None);
        for _ in 0..2 {
            let request = TestRequest::default().to_http_request();
            let response = respond(&request, Reading::Public, &PeriodSelector::default(), &top)?;
            let body = response.into_body().try_into_bytes().unwrap_or_default();
            assert_eq!(body.as_ptr(), top.body.as_ptr());
        }
        Ok(())
    }

    #[test]
    fn a_body_that_is_not_an_object_is_never_sent() {
        let broken = Top { body: "".into(), ..top(None) };
        assert!(
            respond(&TestRequest::default().to_http_request(), Reading::Public, &PeriodSelector::default(), &broken)
                .is_err()
        );
    }
}
