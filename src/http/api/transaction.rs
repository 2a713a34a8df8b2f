//! `/v1/boards/{board}/transactions/{transaction_id}`: one row of the ledger.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};

use crate::{
    Result,
    http::{
        api::{
            path::{BoardPath, TransactionPath},
            query, reply,
            user::ActRequest,
        },
        auth::caller,
        server::{Api, problem::WriteProblems, version},
    },
    scoring,
};

/// Void a score
///
/// Needs an admin key. The score no longer counts in open periods. The ledger keeps it.
#[utoipa::path(
    post, path = "/v1/boards/{board}/transactions/{transaction_id}/void", operation_id = "void_score",
    tag = "administration", security(("key" = [])), params(BoardPath, TransactionPath),
    request_body = Option<ActRequest>,
    responses((status = 204, description = "The score was voided."), WriteProblems),
)]
pub(crate) async fn void(api: Data<Api>, request: HttpRequest, payload: Payload) -> Result<HttpResponse> {
    let by = caller::admin(&api, &request).await?;
    let path = BoardPath::of(&request)?;
    let TransactionPath { transaction_id } = TransactionPath::of(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let board = path.find(&api.instance).await?;
    scoring::void(&api.instance.rankings, &board, transaction_id, &act).await?;
    version::note_write(&request, &board);
    Ok(reply::done())
}
