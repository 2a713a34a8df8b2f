//! The webhooks in the `OpenAPI` document. docs/webhooks.md explains them.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ContentBuilder, HttpMethod, Paths, PathsBuilder, Ref, RefOr, Required, ResponseBuilder, Schema,
        path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem},
        request_body::RequestBodyBuilder,
    },
};

use crate::http::api::{export::FileRowResponse, period::PeriodResponse};

/// A period was closed. The members are those of the closing; a later correction sends no message.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a message that SQL writes")]
pub(crate) struct PeriodClosedMessage<'a> {
    /// Id of the message. A message may arrive more than once, with the same id.
    #[schema(example = 17)]
    message_id: i64,
    /// Kind of message: `period_closed`.
    #[schema(rename = "type", example = "period_closed")]
    kind: &'a str,
    /// Name of the board.
    #[schema(example = "arena")]
    board: &'a str,
    /// The period.
    period: PeriodResponse<'a>,
    /// Players in the ranking.
    #[schema(example = 1_000_000)]
    players: u64,
    /// The frozen top, best first.
    top: Vec<FileRowResponse<'a>>,
    /// Players who have risen or fallen to another tier. Absent for boards without tiers.
    #[schema(nullable = false)]
    tiers: Option<TierChangesResponse<'a>>,
    /// Results of the board's league. Absent in periods without one.
    #[schema(nullable = false)]
    league: Option<LeagueMovesResponse<'a>>,
}

/// Results of a league in a period.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a message that SQL writes")]
pub(crate) struct LeagueMovesResponse<'a> {
    /// Name of the league.
    #[schema(example = "arena-league")]
    name: &'a str,
    /// The divisions with cohorts, lowest first.
    divisions: Vec<DivisionMovesResponse<'a>>,
    /// The first 100 members who move, highest division first. The history of each player has the others.
    moves: Vec<LeagueMoveResponse<'a>>,
}

/// Results of a division.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a message that SQL writes")]
pub(crate) struct DivisionMovesResponse<'a> {
    #[schema(example = "silver")]
    division: &'a str,
    cohorts: u64,
    players: u64,
    promoted: u64,
    relegated: u64,
}

/// A player who moves to another division.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a message that SQL writes")]
pub(crate) struct LeagueMoveResponse<'a> {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Rank in the cohort; null without a score.
    #[schema(required = true, example = 3)]
    rank: Option<u64>,
    #[schema(example = "silver")]
    from: &'a str,
    #[schema(example = "gold")]
    to: &'a str,
}

/// Players who have risen or fallen to another tier since an earlier period.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a message that SQL writes")]
pub(crate) struct TierChangesResponse<'a> {
    /// The last closed period of the same kind before this one that has its archive; null if there is
    /// none. Then nobody has risen or fallen.
    #[schema(required = true, example = "week:2024-01-08")]
    since: Option<&'a str>,
    /// Players who have risen, all of them.
    #[schema(example = 12)]
    promoted: u64,
    /// Players who have fallen, all of them.
    #[schema(example = 15)]
    demoted: u64,
    /// The first 1,000 of those who have risen, by position.
    promotions: Vec<TierChangeResponse<'a>>,
    /// The first 1,000 of those who have fallen, by position; then those without a score in this period.
    demotions: Vec<TierChangeResponse<'a>>,
}

/// A player who has risen or fallen to another tier.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes a message that SQL writes")]
pub(crate) struct TierChangeResponse<'a> {
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Tier in the earlier period; null for none.
    #[schema(required = true, example = "silver")]
    from: Option<&'a str>,
    /// Tier in this period; null for none.
    #[schema(required = true, example = "gold")]
    to: Option<&'a str>,
}

/// Describes the requests that the service sends to a board's webhook.
pub(crate) fn webhooks() -> Paths {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(PeriodClosedMessage::name()))).build();
    let body = RequestBodyBuilder::new().required(Some(Required::True)).content("application/json", body).build();
    let id = "`message_id` of the body, which alone is signed.";
    let signature = "`t=SECONDS,v1=HEX`. HEX is the HMAC-SHA256 of `SECONDS.BODY`. Its key are the bytes that the \
                     secret shows in base64 after `whsec_`.";
    let operation = OperationBuilder::new()
        .tag("webhooks")
        .operation_id(Some("period_closed"))
        .summary(Some("A period was closed"))
        .description(Some("Sent to the webhook of the board, if it has one. Create it with `centile webhook set`."))
        .parameter(header("Centile-Message-Id", i64::schema(), id))
        .parameter(header("Centile-Signature", String::schema(), signature))
        .request_body(Some(body))
        .response("2XX", ResponseBuilder::new().description("The receiver has the message."))
        .response("default", ResponseBuilder::new().description("The service sends the message again later."))
        .build();
    PathsBuilder::new().path("period_closed", PathItem::new(HttpMethod::Post, operation)).build()
}

fn header(name: &str, schema: RefOr<Schema>, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}
