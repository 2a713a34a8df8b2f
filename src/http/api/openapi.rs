//! `/openapi.json`: the `OpenAPI` document. Each handler describes itself; this file assembles the
//! descriptions.

use std::{
    future::{Ready, ready},
    sync::LazyLock,
};

use actix_web::{
    HttpResponse,
    http::header::{self, ContentType},
};
use utoipa::{
    Modify, OpenApi, PartialSchema as _,
    openapi::{
        Components, Header, Object, Ref, RefOr, Required, Response, ResponseBuilder, Schema, Type,
        path::{Operation, ParameterBuilder, ParameterIn},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::{
    Error, Result,
    http::{
        api::{
            board, classic, distribution,
            export::{self, FileRowResponse},
            friend, health, history, key, league, list, live, newcomer, period, progress, quarantine, season, standing,
            standings, submit, template, tier,
            transactions::{self, CursorResponse},
            user,
            webhook::{self, PeriodClosedMessage},
        },
        server::problem::{self, Problem, TooManyProblem},
    },
    model::{
        board::{BoardSettings, PeriodKind},
        quarantine::State,
        score::Transaction,
    },
};

/// The serialized document. Empty if it cannot be serialized; [`document`] then responds with an
/// error.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi().to_json().unwrap_or_default());

/// Builds the document of this service.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Get the OpenAPI document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "read_openapi", tag = "operation",
    responses((status = 200, description = "The OpenAPI document of the service.", body = Object), TooManyProblem),
)]
pub(crate) fn document() -> Ready<Result<HttpResponse>> {
    ready(if DOCUMENT.is_empty() {
        Err(Error::Internal("the OpenAPI document cannot be written as JSON".into()))
    } else {
        Ok(HttpResponse::Ok()
            .insert_header(ContentType::json())
            .insert_header((header::CACHE_CONTROL, "no-cache"))
            .body(DOCUMENT.as_str()))
    })
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Centile",
        description = "A leaderboard service. Every rank is exact for the version that its response names. Reading needs no \
            key unless a board requires one; writing needs a key. Errors are problem documents (RFC 9457), also for an unknown \
            path (404) and for a method that a path does not support (405, with `Allow`). Give each score \
            event an `id` to be able to send it again. `create_key` and `erase_user` take an `Idempotency-Key` for that; other \
            writes refuse the header. In a response, ignore unknown members; a text without an `enum` may get new values.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    paths(
        list::list,
        list::chosen,
        list::query,
        standing::show,
        history::list,
        progress::list,
        live::subscribe,
        newcomer::show,
        distribution::show,
        tier::list,
        export::csv,
        export::ndjson,
        submit::submit,
        submit::submit_batch,
        submit::submit_boards,
        board::list,
        board::create,
        board::show,
        board::update,
        board::delete,
        period::list,
        season::create,
        user::put,
        user::show,
        standings::list,
        template::list,
        template::show,
        template::set,
        template::delete,
        league::read,
        league::cohort,
        league::history,
        live::league::follow,
        league::list,
        league::show,
        league::set,
        league::delete,
        user::erase,
        user::ban,
        user::unban,
        friend::list,
        friend::change,
        friend::add,
        friend::remove,
        standing::reset,
        transactions::void,
        transactions::list,
        quarantine::list,
        quarantine::accept,
        quarantine::reject,
        key::create,
        key::list,
        key::revoke,
        classic::list,
        classic::submit,
        classic::standing,
        health::alive,
        health::ready_to_serve,
        health::metrics,
        document,
    ),
    servers((url = "/", description = "The service that serves this document.")),
    components(schemas(BoardSettings, Problem, PeriodKind, State, FileRowResponse, Transaction, CursorResponse, PeriodClosedMessage)),
    modifiers(&CommonParts),
    tags(
        (name = "reading", description = "Rankings: the top, pages, one player, chosen players, the distribution, tiers."),
        (name = "writing", description = "Scores, from game servers."),
        (name = "boards", description = "Boards, their rules, periods and seasons."),
        (name = "leagues", description = "Divisions of small cohorts, whose best members move up at the end of each period."),
        (name = "players", description = "Player profiles and friends."),
        (name = "administration", description = "Voids, resets, bans, erasures and quarantine."),
        (name = "keys", description = "API keys."),
        (name = "classic", description = "The default board in the response shapes of common clients."),
        (name = "webhooks", description = "Requests that the service sends."),
        (name = "operation", description = "Health checks, metrics and the OpenAPI document."),
    ),
)]
struct Document;

/// Operations that answer `GET` about a ranking.
const RANKING_READS: [&str; 8] = [
    "list_scores",
    "list_chosen_scores",
    "show_standing",
    "show_rank_of_score",
    "show_distribution",
    "list_tiers",
    "list_classic_scores",
    "show_classic_score",
];

/// Adds what several calls share: the key, the problem responses, and the headers of rankings.
struct CommonParts;

impl Modify for CommonParts {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, created with `centile key create`."))
            .build();
        let components = document.components.get_or_insert_with(Components::new);
        // The settings of a new board, of a template, and changes to a board.
        if let Some(RefOr::T(Schema::Object(mut settings))) = components.schemas.remove("BoardSettings") {
            let mut new = settings.clone();
            new.description = Some("Rules of a new board. An absent rule gets its default.".to_owned());
            new.required = vec!["slug".to_owned(), "mode".to_owned()];
            components.schemas.insert("CreateBoard".to_owned(), Schema::Object(new).into());
            let mut of_template = settings.clone();
            of_template.description = Some("Rules of a template's boards. An absent rule gets its default.".to_owned());
            of_template.properties.remove("slug");
            components.schemas.insert("BoardSettings".to_owned(), Schema::Object(of_template).into());
            settings.description = Some("Changes to the rules of a board. An absent rule stays as it is.".to_owned());
            settings.properties.retain(|name, _| !["slug", "periods", "first_layout"].contains(&name.as_str()));
            components.schemas.insert("UpdateBoard".to_owned(), Schema::Object(settings).into());
        }
        components.add_security_scheme("key", SecurityScheme::Http(key));
        for (name, description, kind) in COMMON_HEADERS {
            components.headers.insert(name.to_owned(), described(Object::with_type(kind).into(), description).into());
        }
        for (name, mut response) in problem::components() {
            add_common_headers(&mut response, true);
            components.responses.insert(name.to_owned(), response.into());
        }
        for item in document.paths.paths.values_mut() {
            let methods = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
            for operation in methods.into_iter().flatten() {
                describe_ranking(operation);
                describe_common(operation);
                // utoipa makes a body that is only a reference optional.
                if let Some(RefOr::T(body)) = &mut operation.request_body
                    && ["create_board", "update_board", "set_template"]
                        .contains(&operation.operation_id.as_deref().unwrap_or_default())
                {
                    body.required = Some(Required::True);
                }
            }
        }
        document.webhooks = Some(webhook::webhooks());
    }
}

/// Headers of every response; all but the first only if a rate limit is configured.
const COMMON_HEADERS: [(&str, &str, Type); 4] = [
    ("X-Request-Id", "Id of the request in the log: that of the request's header, or a random one.", Type::String),
    ("RateLimit-Limit", "Requests allowed at once. Present if a rate limit is configured.", Type::Integer),
    ("RateLimit-Remaining", "Requests left. Present if a rate limit is configured.", Type::Integer),
    (
        "RateLimit-Reset",
        "Seconds until all requests are available again. Present if a rate limit is configured.",
        Type::Integer,
    ),
];

fn described(schema: RefOr<Schema>, description: &str) -> Header {
    let mut header = Header::new(schema);
    header.description = Some(description.to_owned());
    header
}

/// Refers to the common headers, with those of a rate limit if the call `is_limited`.
fn add_common_headers(response: &mut Response, is_limited: bool) {
    for (name, ..) in COMMON_HEADERS.iter().take(if is_limited { COMMON_HEADERS.len() } else { 1 }) {
        let header = Ref::new(format!("#/components/headers/{name}"));
        response.headers.insert((*name).to_owned(), RefOr::Ref(header));
    }
}

/// Adds the headers that every call has.
fn describe_common(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let is_limited = responses.contains_key("429");
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            add_common_headers(response, is_limited);
        }
    }
}

/// Adds the headers that calls about a ranking share, and 304 to those with an entity tag.
fn describe_ranking(operation: &mut Operation) {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let has_tag = RANKING_READS.contains(&id);
    let is_file = ["export_csv", "export_ndjson"].contains(&id);
    let is_query = ["query_scores", "list_standings"].contains(&id);
    // Headers of the successful response.
    if let Some(RefOr::T(found)) = operation.responses.responses.get_mut("200") {
        let mut add = |name: &str, schema: RefOr<Schema>, description: &str| {
            found.headers.insert(name.to_owned(), described(schema, description).into());
        };
        if has_tag || is_query {
            let source = "Where the response came from, for diagnosis only: `index` for the rank index in memory, or `sql`. Stale responses have none.";
            add("Centile-Source", String::schema(), source);
        }
        if has_tag {
            let tag = "Entity tag for `If-None-Match`. In an open period only the top has one, and no stale response has one.";
            add("ETag", String::schema(), tag);
            let caching = "`max-age=60, must-revalidate` for a closed period requested by name (after `private` if the board needs a \
                           key), otherwise `no-cache`.";
            add("Cache-Control", String::schema(), caching);
        }
        if is_file {
            add("Centile-Version", String::schema(), "Version that the file is exact for.");
            add("Centile-Players", u64::schema(), "Number of players in the file.");
        }
    }
    // The request header of a conditional request, and the 304 that answers it.
    if has_tag {
        let known = ParameterBuilder::new()
            .name("If-None-Match")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some("Entity tag of an earlier response."))
            .schema(Some(String::schema()))
            .build();
        operation.parameters.get_or_insert_default().push(known.into());
        let unchanged = "The response has not changed since the one that `If-None-Match` names.";
        let mut unchanged = ResponseBuilder::new().description(unchanged).build();
        if let Some(RefOr::T(found)) = operation.responses.responses.get("200") {
            let kept = ["ETag", "Cache-Control"].map(|name| (name.to_owned(), found.headers.get(name).cloned()));
            unchanged.headers.extend(kept.into_iter().filter_map(|(name, header)| Some((name, header?))));
        }
        operation.responses.responses.insert("304".to_owned(), unchanged.into());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Method and path of every operation in the document.
    fn documented() -> BTreeSet<(String, String)> {
        let document = serde_json::to_value(openapi()).unwrap_or_default();
        let paths = document["paths"].as_object().cloned().unwrap_or_default();
        let operations = paths.into_iter().flat_map(|(path, item)| {
            let methods: Vec<String> = item.as_object().map(|item| item.keys().cloned().collect()).unwrap_or_default();
            methods.into_iter().map(move |method| (method.to_uppercase(), path.clone()))
        });
        operations.collect()
    }

    #[test]
    fn the_document_lists_exactly_the_routes() {
        let mut routed = BTreeSet::new();
        for endpoint in crate::http::endpoints() {
            // HEAD is part of GET and has no separate description.
            for method in endpoint.methods().iter().filter(|method| *method != actix_web::http::Method::HEAD) {
                routed.insert((method.to_string(), endpoint.path().to_owned()));
            }
        }
        assert_eq!(documented(), routed);
    }

    #[test]
    fn every_reference_has_a_target() {
        let document = serde_json::to_value(openapi()).unwrap_or_default();
        let mut open = vec![&document];
        while let Some(value) = open.pop() {
            match value {
                serde_json::Value::Object(members) => {
                    if let Some(target) = members.get("$ref").and_then(|target| target.as_str()) {
                        let pointer = target.strip_prefix('#').unwrap_or_default();
                        assert!(document.pointer(pointer).is_some(), "{target} does not exist");
                    }
                    open.extend(members.values());
                }
                serde_json::Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
    }
}
