//! `/v1/boards/{board}/transactions`: the ledger of a board as an event stream, and voids of its rows.

use std::{rc::Rc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::{Bytes, Data, Payload},
};
use futures::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result, boards,
    delivery::ledger_stream::{LedgerReader, LedgerStart},
    http::{
        api::{
            export::FileResponse,
            path::{BoardPath, TransactionPath},
            query, reply,
            user::ActRequest,
        },
        auth::caller,
        server::{
            Api,
            activity::Activity,
            problem::{ActProblems, WriteProblems},
            version,
        },
    },
    model::score::Transaction,
    scoring, telemetry,
};

/// Maximum seconds of a request that waits for transactions.
const WAIT_MAX_SECONDS: u64 = 30;

/// Initial bytes of a buffer per row.
const ROW_BYTES: usize = 256;

/// Selects rows of the ledger.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TransactionsQuery {
    /// `cursor` of an earlier response, or `now` to begin at the present; the oldest transactions when
    /// absent.
    #[param(min_length = 1)]
    after: Option<String>,
    /// Maximum transactions.
    #[param(minimum = 1, maximum = 10000, default = 1000)]
    limit: Option<u64>,
    /// Seconds to wait if there are no transactions yet.
    #[param(minimum = 0, maximum = 30, default = 0)]
    wait: Option<u64>,
}

/// The last line of a response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CursorResponse {
    /// `after` of the next request.
    cursor: String,
}

/// Follow a board's transactions
///
/// Needs a server key for the board, or an admin key. Returns rows of the board's ledger as one JSON
/// object per line: a `TransactionResponse`, whatever the transaction changed. The last line is a
/// `CursorResponse`, also if there are no transactions. Send its `cursor` as `after` to read on: no
/// transaction is left out, and none comes twice. A response without the last line is incomplete;
/// repeat the request.
///
/// Transactions of a player, and of a lane, come in the order of their commits.
#[utoipa::path(
    get, path = "/v1/boards/{board}/transactions", operation_id = "list_transactions", tag = "administration",
    security(("key" = [])), params(BoardPath, TransactionsQuery),
    responses(
        (status = 200, description = "Transactions, and the cursor.", body = FileResponse, content_type = "application/x-ndjson"),
        ActProblems,
    ),
)]
pub(crate) async fn list(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    let key = caller::authenticated(&api, &request).await?;
    let path = BoardPath::from_request(&request)?;
    key.may_serve()?;
    key.may_read(&path.board)?;
    let query: TransactionsQuery = query::parse(&request)?;
    let limit = query::bounded("limit", query.limit, 1_000, 1, 10_000)?;
    let wait = Duration::from_secs(query::bounded("wait", query.wait, 0, 0, WAIT_MAX_SECONDS)?);
    let board = boards::find(&api.instance.boards, &path.board).await?;
    let start = LedgerStart::parse(query.after.as_deref(), board.id)?;
    let mut reader = LedgerReader::begin(&api.instance.ledger_streams, &board, start).await?;
    let rows = reader.read_page(limit).await?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "application/x-ndjson"));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    if !rows.is_empty() || wait.is_zero() || request.method() == Method::HEAD {
        return Ok(response.body(lines(&rows, &reader)?));
    }
    // The head is sent at once, so that the wait does not count as the time of the answer.
    let rest = async move {
        // Otherwise the connection would count as idle and be closed.
        let activity = request.conn_data::<Rc<Activity>>().cloned();
        let _answering = activity.as_ref().map(Activity::answering);
        let read = async {
            let rows = reader.read_or_wait(limit, wait, &api.ending).await?;
            caller::recheck(&request).await?;
            lines(&rows, &reader)
        };
        read.await.inspect_err(|error| tracing::warn!(%error, "an event stream was cut"))
    };
    Ok(response.streaming(stream::once(Box::pin(rest))))
}

/// Renders rows and the cursor after them.
fn lines(rows: &[Transaction], reader: &LedgerReader) -> Result<Bytes> {
    let failed = |error| Error::Internal(format!("cannot write a line as JSON: {error}"));
    let mut text = Vec::with_capacity((rows.len() + 1) * ROW_BYTES);
    for row in rows {
        serde_json::to_writer(&mut text, row).map_err(failed)?;
        text.push(b'\n');
    }
    serde_json::to_writer(&mut text, &CursorResponse { cursor: reader.cursor().text() }).map_err(failed)?;
    text.push(b'\n');
    telemetry::count_streamed(rows.len());
    Ok(text.into())
}

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
    let path = BoardPath::from_request(&request)?;
    let TransactionPath { transaction_id } = TransactionPath::from_request(&request)?;
    query::none(&request)?;
    let act = ActRequest::read(&api, &request, payload, by).await?;
    let board = boards::find(&api.instance.boards, &path.board).await?;
    scoring::void(&api.instance.store.admin, &api.instance.rankings, &board, transaction_id, &act).await?;
    version::record_write(&request, &board);
    Ok(reply::done())
}
