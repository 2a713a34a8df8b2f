//! `/v1/templates`: rules of boards that their first score creates.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Payload},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Error, Result, boards,
    http::{
        api::{board::BoardResponse, body, path::TemplatePath, query, reply},
        auth::caller,
        server::{
            Api,
            problem::{ActProblems, ReadProblems, WriteProblems},
        },
    },
    model::template::{Template, TemplateSettings},
};

/// A template of boards.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateResponse<'a> {
    #[schema(example = "level")]
    name: &'a str,
    /// The beginning of the names of its boards, and `*`.
    #[schema(example = "level-*")]
    pattern: &'a str,
    /// Number of its boards.
    #[schema(example = 1_234)]
    boards: i32,
    /// Maximum number of its boards.
    #[schema(example = 1_000_000)]
    max_boards: i32,
    /// The rules of its boards, as boards show them. Slug and title are the beginning of their names.
    rules: BoardResponse<'a>,
}

impl<'a> From<&'a Template> for TemplateResponse<'a> {
    fn from(Template { name, pattern, boards, max_boards, board }: &'a Template) -> Self {
        Self { name, pattern, boards: *boards, max_boards: *max_boards, rules: board.into() }
    }
}

/// All templates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplatesResponse<'a> {
    /// The templates, by name.
    data: Vec<TemplateResponse<'a>>,
}

/// Create or change a template
///
/// Needs an admin key. A board whose name matches the pattern is created by its first score. A
/// change applies to all boards of the template at once. Mode, order, ties, time zone, lanes and
/// periods cannot change once there are scores.
#[utoipa::path(
    put, path = "/v1/templates/{template}", operation_id = "set_template", tag = "boards", security(("key" = [])),
    params(TemplatePath), request_body = TemplateSettings,
    responses((status = 200, description = "The template.", body = TemplateResponse), WriteProblems),
)]
pub(crate) async fn set(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = TemplatePath::from_request(&request)?;
    query::none(&request)?;
    let settings: TemplateSettings = body::json(&api, &request, payload).await?;
    if settings.rules.slug.is_some() {
        return Err(Error::invalid("slug", "is not a rule of a template"));
    }
    let store = &api.instance.store;
    let template = boards::set_template(&store.admin, &api.instance.boards, &path.template, &settings, &by).await?;
    Ok(reply::written(StatusCode::OK, &TemplateResponse::from(&template)))
}

/// Delete a template
///
/// Needs an admin key. Delete its boards first.
#[utoipa::path(
    delete, path = "/v1/templates/{template}", operation_id = "delete_template", tag = "boards",
    security(("key" = [])), params(TemplatePath),
    responses((status = 204, description = "The template was deleted."), ActProblems),
)]
pub(crate) async fn delete(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = TemplatePath::from_request(&request)?;
    query::none(&request)?;
    boards::delete_template(&api.instance.store.admin, &path.template, &by).await?;
    Ok(reply::done())
}

/// Show a template
///
/// Needs a server or admin key.
#[utoipa::path(
    get, path = "/v1/templates/{template}", operation_id = "show_template", tag = "boards", security(("key" = [])),
    params(TemplatePath),
    responses((status = 200, description = "The template.", body = TemplateResponse), ReadProblems),
)]
pub(crate) async fn show(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::server(&api, &request).await?;
    query::none(&request)?;
    let path = TemplatePath::from_request(&request)?;
    let template = boards::template(&api.instance.store.reader, &path.template).await?;
    Ok(reply::read_response(&TemplateResponse::from(&template)))
}

/// List the templates
///
/// Needs a server or admin key.
#[utoipa::path(
    get, path = "/v1/templates", operation_id = "list_templates", tag = "boards", security(("key" = [])),
    responses((status = 200, description = "The templates, by name.", body = TemplatesResponse), ReadProblems),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    caller::server(&api, &request).await?;
    query::none(&request)?;
    let templates = api.instance.store.reader.templates(None).await?;
    let data = templates.iter().map(TemplateResponse::from).collect();
    Ok(reply::read_response(&TemplatesResponse { data }))
}
