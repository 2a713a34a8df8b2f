//! `/healthz`, `/readyz` and `/metrics`: checks and metrics for operators.

use std::future::{Ready, ready};

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{self, ContentType},
    },
    web::Data,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Result,
    http::{
        api::{metrics, reply},
        server::{Api, problem::UnavailableProblem},
    },
};

/// The text `ok`.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "ok")]
pub(crate) struct HealthResponse(
    #[expect(dead_code, reason = "describes the body, which is always the same")] &'static str,
);

/// Check that the process is alive
#[utoipa::path(
    get, path = "/healthz", operation_id = "check_health", tag = "operation",
    responses((status = 200, description = "The process is alive.", body = HealthResponse, content_type = "text/plain")),
)]
pub(crate) fn alive() -> Ready<HttpResponse> {
    ready(
        HttpResponse::Ok()
            .insert_header(ContentType::plaintext())
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body("ok"),
    )
}

/// The state of an instance that can serve requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadyResponse {
    /// Always `ready`: an instance that is not ready responds with a problem.
    #[schema(example = "ready")]
    state: &'static str,
    /// `same` if the database has the schema that this program needs; `newer` if a newer program
    /// should replace this one.
    #[schema(example = "same")]
    schema: &'static str,
    /// `reachable` if Redis responds or none is configured; `unreachable` otherwise. Without Redis
    /// the service is only slower.
    #[schema(example = "reachable")]
    cache: &'static str,
}

/// Check that requests can be served
#[utoipa::path(
    get, path = "/readyz", operation_id = "check_readiness", tag = "operation",
    responses(
        (status = 200, description = "The database responds and has the required schema.", body = ReadyResponse),
        UnavailableProblem,
    ),
)]
pub(crate) async fn ready_to_serve(api: Data<Api>) -> Result<HttpResponse> {
    let readiness = api.instance.ready().await?;
    let schema = if readiness.has_newer_schema { "newer" } else { "same" };
    let cache = if readiness.cache_is_reachable { "reachable" } else { "unreachable" };
    Ok(reply::written(StatusCode::OK, &ReadyResponse { state: "ready", schema, cache }))
}

/// Metrics in the text format of Prometheus.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "centile_periods_due 0")]
pub(crate) struct MetricsResponse(#[expect(dead_code, reason = "describes the body, which is text")] &'static str);

/// Read the metrics
#[utoipa::path(
    get, path = "/metrics", operation_id = "read_metrics", tag = "operation",
    responses(
        (status = 200, description = "Metrics in the text format of Prometheus.", body = MetricsResponse, content_type = "text/plain"),
        UnavailableProblem,
    ),
)]
pub(crate) async fn metrics(api: Data<Api>) -> Result<HttpResponse> {
    let numbers = metrics::render(&api.instance).await?;
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .body(numbers))
}
