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
        Api,
        api::{problem::UnavailableProblem, reply},
        metrics,
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
    get, path = "/healthz", operation_id = "healthz", tag = "operation",
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
    state: ReadyState,
    schema: SchemaEdition,
    cache: CacheState,
}

/// The only state: an instance that is not ready responds with a problem.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ReadyState {
    Ready,
}

/// The database's schema compared with the one that this program needs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SchemaEdition {
    /// The schema that this program needs.
    Same,
    /// A newer schema. Replace this instance by a newer program.
    Newer,
}

/// Whether Redis responds. Without it the service is only slower.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CacheState {
    /// Redis responds, or none is configured.
    Reachable,
    /// Redis does not respond.
    Unreachable,
}

/// Check that requests can be served
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "operation",
    responses(
        (status = 200, description = "The database responds and has the required schema.", body = ReadyResponse),
        UnavailableProblem,
    ),
)]
pub(crate) async fn ready_to_serve(api: Data<Api>) -> Result<HttpResponse> {
    let readiness = api.instance.ready().await?;
    let schema = if readiness.has_newer_schema { SchemaEdition::Newer } else { SchemaEdition::Same };
    let cache = if readiness.cache_is_reachable { CacheState::Reachable } else { CacheState::Unreachable };
    Ok(reply::written(StatusCode::OK, &ReadyResponse { state: ReadyState::Ready, schema, cache }))
}

/// Metrics in the text format of Prometheus.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "centile_periods_due 0")]
pub(crate) struct MetricsResponse(#[expect(dead_code, reason = "describes the body, which is text")] &'static str);

/// Read the metrics
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operation",
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
