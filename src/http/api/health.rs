//! `/healthz`, `/readyz`: what whoever runs the service asks it.

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

/// The word for "yes".
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "ok")]
pub(crate) struct HealthResponse(
    #[expect(dead_code, reason = "describes the body, which is always the same")] &'static str,
);

/// Tell whether the process lives
#[utoipa::path(
    get, path = "/healthz", operation_id = "healthz", tag = "operation",
    responses((status = 200, description = "The process lives.", body = HealthResponse, content_type = "text/plain")),
)]
pub(crate) fn alive() -> Ready<HttpResponse> {
    ready(
        HttpResponse::Ok()
            .insert_header(ContentType::plaintext())
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .body("ok"),
    )
}

/// That requests can be answered, and with what.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadyResponse {
    status: ReadyStatus,
    schema: SchemaEdition,
    cache: CacheState,
}

/// The word for "ready"; whatever else is no answer but a problem.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ReadyStatus {
    Ready,
}

/// How the database's schema compares with the one that this program was built for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum SchemaEdition {
    /// It is that one.
    Same,
    /// It is a newer one: this instance is to be replaced.
    Newer,
}

/// Whether Redis answers, without which everything is only slower.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CacheState {
    /// It does, or none is used.
    Reachable,
    /// It does not.
    Unreachable,
}

/// Tell whether requests can be answered
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "operation",
    responses(
        (status = 200, description = "The database answers, and has the schema that is needed.", body = ReadyResponse),
        UnavailableProblem,
    ),
)]
pub(crate) async fn ready_to_serve(api: Data<Api>) -> Result<HttpResponse> {
    let readiness = api.instance.ready().await?;
    let schema = if readiness.has_newer_schema { SchemaEdition::Newer } else { SchemaEdition::Same };
    let cache = if readiness.cache_is_reachable { CacheState::Reachable } else { CacheState::Unreachable };
    Ok(reply::written(StatusCode::OK, &ReadyResponse { status: ReadyStatus::Ready, schema, cache }))
}

/// Numbers in the text format of Prometheus.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, example = "centile_periods_due 0")]
pub(crate) struct MetricsResponse(#[expect(dead_code, reason = "describes the body, which is text")] &'static str);

/// Tell how the service is, in numbers
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "operation",
    responses(
        (status = 200, description = "Numbers in the text format of Prometheus.", body = MetricsResponse, content_type = "text/plain"),
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
