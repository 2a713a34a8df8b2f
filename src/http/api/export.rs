//! `/v1/boards/{board}/scores.csv` and `.ndjson`: a whole period as a file.

use std::{rc::Rc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::{Bytes, Data},
};
use chrono::{DateTime, Utc};
use futures::stream;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::{
        api::{
            path::BoardPath,
            query::{self, PeriodText, SegmentText, Selection},
        },
        auth::caller,
        server::{
            Api,
            activity::{Activity, Answering},
            address,
            problem::ReadProblems,
            slots::Slot,
        },
    },
    model::file_format::FileFormat,
    ranking::export::{self, Export},
};

/// Timeout of a download. Ten million players take a minute or two; the rest is for slow
/// connections. After it the connection is aborted, so that no client mistakes a part for the whole
/// file.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(30);

/// Selects the period.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// Period, such as `week`, `week:previous` or `season:spring`; the board's default
    /// period when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
    /// Only the players of this segment, such as `country:DE`; all players when absent.
    #[param(value_type = Option<SegmentText>)]
    segment: Option<String>,
    /// Whether rows have the metadata of the event that decides the score.
    #[serde(default)]
    #[param(value_type = Option<bool>, default = false)]
    metadata: bool,
}

/// Lines of text.
#[derive(Debug, ToSchema)]
#[schema(value_type = String)]
pub(crate) struct FileResponse(#[expect(dead_code, reason = "describes the body, which is text")] &'static str);

/// A row of a file: one player.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes rows that PostgreSQL writes")]
pub(crate) struct FileRowResponse<'a> {
    /// Position in the total order, from 1; never shared.
    #[schema(example = 7, minimum = 1)]
    position: u64,
    /// Rank, shared among equals on `shared` boards.
    #[schema(example = 6, minimum = 1)]
    rank: u64,
    /// The caller's own id of the player.
    #[schema(example = "ada")]
    user_id: &'a str,
    /// Name.
    #[schema(example = "Ada")]
    name: &'a str,
    /// Score.
    #[schema(example = 1_234)]
    score: i64,
    /// When the score was reached. Absent on `second` boards.
    #[schema(required = false, nullable = false)]
    reached_at: Option<DateTime<Utc>>,
    /// Second number. Present on `second` boards.
    #[schema(required = false, nullable = false, example = 73)]
    tiebreak: Option<i64>,
    /// Tier; null for a player in none. Present on boards with tiers.
    #[schema(required = false, example = "gold")]
    tier: Option<&'a str>,
    /// Metadata of the event that decides the score; null if it has none. Present with
    /// `metadata=true`.
    #[schema(required = false, value_type = Option<Object>, example = json!({"character": "mage"}))]
    metadata: Option<&'a str>,
}

/// Read a whole period as CSV
///
/// Returns every player of one version, best first, in the format of RFC 4180. The header line
/// names the columns `position`, `rank`, `user_id`, `name`, `score` and `reached_at`. On `second` boards,
/// `tiebreak` is in place of `reached_at`. Boards with tiers have the column `tier`. With
/// `metadata=true` the last column is `metadata`, whose fields are JSON.
///
/// An instance sends four files at a time (otherwise 503), at most two to one address (otherwise
/// 429). Requests with a key may use two more. A download may take 30 minutes. If a download fails,
/// the connection closes without the last chunk. Names are not escaped against formulas in
/// spreadsheets.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores.csv", operation_id = "export_csv", tag = "reading", security((), ("key" = [])),
    params(BoardPath, ExportQuery),
    responses(
        (status = 200, description = "All players of the period.", body = FileResponse, content_type = "text/csv"),
        ReadProblems,
    ),
)]
pub(crate) async fn csv(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    file(&api, &request, FileFormat::Csv).await
}

/// Read a whole period as NDJSON
///
/// The same rows as in CSV, as one JSON object per line: a `FileRowResponse`.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores.ndjson", operation_id = "export_ndjson", tag = "reading", security((), ("key" = [])),
    params(BoardPath, ExportQuery),
    responses(
        (status = 200, description = "All players of the period.", body = FileResponse, content_type = "application/x-ndjson"),
        ReadProblems,
    ),
)]
pub(crate) async fn ndjson(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    file(&api, &request, FileFormat::Ndjson).await
}

async fn file(api: &Api, request: &HttpRequest, format: FileFormat) -> Result<HttpResponse> {
    let path = BoardPath::from_request(request)?;
    let board = caller::readable(api, request, &path.board).await?;
    let query: ExportQuery = query::parse(request)?;
    let selector = Selection::parse(query.period.as_deref(), query.segment.as_deref())?.on(&board);
    let network = address::client_address(&api.settings.trusted_proxies, request).map(address::network);
    let slot = api.files.take(network, caller::has_key(api, request)).await?;
    let rankings = api.rankings_for(request).await?;
    let export = export::begin(rankings, &board, &selector, format, query.metadata).await?;
    let (media_type, ending) = match format {
        FileFormat::Csv => ("text/csv; charset=utf-8; header=present", "csv"),
        FileFormat::Ndjson => ("application/x-ndjson", "ndjson"),
    };
    // A slug or period needs no quotes in the header. Some systems forbid colons in file names, and a
    // segment may have any character.
    let segment = export.header.period.segment.as_ref().map(|segment| format!("-{segment}")).unwrap_or_default();
    let segment = segment.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let name = format!("{}-{}{segment}.{ending}", board.slug, export.header.period.name().replace(':', "-"));
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, media_type))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")))
        .insert_header(("Centile-Version", export.header.version.as_str()))
        .insert_header(("Centile-Players", export.header.players));
    if request.method() == Method::HEAD {
        return Ok(response.streaming(stream::empty::<Result<Bytes>>()));
    }
    let activity = request.conn_data::<Rc<Activity>>().cloned();
    let deadline = Instant::now() + DOWNLOAD_TIMEOUT;
    let download = Download { export, deadline, activity, answering: None, _slot: slot };
    Ok(response.streaming(stream::try_unfold(download, Download::next)))
}

struct Download {
    export: Export,
    deadline: Instant,
    activity: Option<Rc<Activity>>,
    /// Set from the first chunk on. Without it the connection would count as idle and be closed.
    answering: Option<Answering>,
    _slot: Slot,
}

impl Download {
    /// Returns the next chunk. An error closes the connection without the end of the file.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        if let Some(activity) = self.activity.take() {
            self.answering = Some(activity.answering());
        }
        let chunk = timeout_at(self.deadline, self.export.next_rows()).await;
        let chunk =
            chunk.unwrap_or_else(|_| Err(Error::TooSlow("the client did not receive the file in time".to_owned())));
        match chunk {
            Ok(chunk) => Ok(chunk.map(|chunk| (Bytes::from(chunk), self))),
            Err(error) => {
                tracing::warn!(%error, "download aborted");
                Err(error)
            }
        }
    }
}
