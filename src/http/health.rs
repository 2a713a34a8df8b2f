//! `/healthz`, `/readyz`: what whoever runs the service asks it.

use std::future::{Ready, ready};

use actix_web::{
    HttpResponse,
    http::header::{self, ContentType},
    web::Data,
};
use utoipa::ToSchema;

use super::{Api, problem::UnavailableProblem};
use crate::{Result, telemetry};

/// The word for "yes".
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "ok")]
pub(super) struct HealthResponse(
    #[expect(dead_code, reason = "describes the body, which is always the same")] &'static str,
);

fn ok() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::plaintext())
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body("ok")
}

/// Tell whether the process lives
#[utoipa::path(
    get, path = "/healthz", operation_id = "healthz", tag = "operation",
    responses((status = 200, description = "The process lives.", body = HealthResponse, content_type = "text/plain")),
)]
pub(super) fn alive() -> Ready<HttpResponse> {
    ready(ok())
}

/// Tell whether requests can be answered
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "operation",
    responses(
        (status = 200, description = "The database answers.", body = HealthResponse, content_type = "text/plain"),
        UnavailableProblem,
    ),
)]
pub(super) async fn ready_to_serve(api: Data<Api>) -> Result<HttpResponse> {
    api.service.ready().await?;
    Ok(ok())
}

/// Numbers in the text format of Prometheus.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "centile_periods_due 0")]
pub(super) struct MetricsResponse(#[expect(dead_code, reason = "describes the body, which is text")] &'static str);

/// Tell how the service is, in numbers
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operation",
    responses(
        (status = 200, description = "Numbers in the text format of Prometheus.", body = MetricsResponse, content_type = "text/plain"),
        UnavailableProblem,
    ),
)]
pub(super) async fn metrics(api: Data<Api>) -> Result<HttpResponse> {
    let numbers = telemetry::render(&api.service).await?;
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(numbers))
}
