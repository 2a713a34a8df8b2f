//! `/v1/boards/{board}/scores.csv` and `.ndjson`: a whole period as a file.

use std::{net::IpAddr, num::NonZero, rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::{Bytes, Data},
};
use futures::stream;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use crate::{
    Error, Result,
    http::{
        Api,
        api::problem::ReadProblems,
        extract::{
            caller,
            path::BoardPath,
            query::{self, PeriodText},
        },
        server::{
            address,
            connection::{Activity, Answering},
            slots::{Slot, Slots},
        },
    },
    ranking::export::{self, Export, Format},
    telemetry,
};

/// Concurrent downloads of an instance: in all, per network, and more for requests with a key. Each has a
/// connection to the database, and keeps a snapshot there.
const OPEN_SLOTS: usize = 4;
const SLOTS_OF_NETWORK: Option<NonZero<usize>> = NonZero::new(2);
const KEYED_SLOTS: usize = 2;

/// Slots for downloads.
#[derive(Debug)]
pub(crate) struct DownloadSlots {
    open: Arc<Slots>,
    keyed: Arc<Slots>,
}

impl DownloadSlots {
    /// All are free.
    pub(crate) fn new() -> Self {
        Self { open: Slots::new("files", OPEN_SLOTS, SLOTS_OF_NETWORK), keyed: Slots::new("files", KEYED_SLOTS, None) }
    }

    /// A slot. [`Error::Unavailable`] or [`Error::TooMany`] if there is none. A key is looked for only if
    /// the slots for everybody are taken.
    async fn take(&self, network: Option<IpAddr>, has_key: impl Future<Output = bool>) -> Result<Slot> {
        let taken = match self.open.take(network) {
            Err(_) if has_key.await => self.keyed.take(network),
            taken => taken,
        };
        taken.inspect_err(|_| telemetry::count_refused("files"))
    }
}

/// How long one may take: ten million players take a minute or two, the rest is for slow lines. Then the connection is broken off, so that
/// nobody takes the part for the whole.
const SENT_WITHIN: Duration = Duration::from_mins(30);

/// Which period.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// Which period, as in a list; `all_time` when absent.
    #[param(value_type = Option<PeriodText>)]
    period: Option<String>,
}

/// Lines of text.
#[derive(Debug, ToSchema)]
#[schema(value_type = String)]
pub(crate) struct FileResponse(#[expect(dead_code, reason = "describes the body, which is text")] &'static str);

/// Read a whole period as CSV
///
/// Every player, best first, in one state, as RFC 4180 has it: a line that names the columns, then `position`, `rank`, `user_id`, `user_name`,
/// `score` and `reached_at` of each. An instance sends four files at a time (otherwise 503), at most two to
/// one address (otherwise 429). Requests with a key may use two more. A download may take 30 minutes. A file that cannot be sent whole has no end: the connection is closed before the last chunk. Names are written as they are, also where a spreadsheet
/// would take them for formulas.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores.csv", operation_id = "export_csv", tag = "reading",
    params(BoardPath, ExportQuery),
    responses(
        (status = 200, description = "All players of the period.", body = FileResponse, content_type = "text/csv",
            headers(
                ("Centile-Version" = String, description = "The state that the file is exact for."),
                ("Centile-Players" = u64, description = "How many players it has."),
            )),
        ReadProblems,
    ),
)]
pub(crate) async fn csv(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    file(&api, &request, Format::Csv).await
}

/// Read a whole period as NDJSON
///
/// As CSV, but for its form: a JSON object a line, whose members are called like the columns.
#[utoipa::path(
    get, path = "/v1/boards/{board}/scores.ndjson", operation_id = "export_ndjson", tag = "reading",
    params(BoardPath, ExportQuery),
    responses(
        (status = 200, description = "All players of the period.", body = FileResponse, content_type = "application/x-ndjson",
            headers(
                ("Centile-Version" = String, description = "The state that the file is exact for."),
                ("Centile-Players" = u64, description = "How many players it has."),
            )),
        ReadProblems,
    ),
)]
pub(crate) async fn ndjson(api: Data<Api>, request: HttpRequest) -> Result<HttpResponse> {
    file(&api, &request, Format::Ndjson).await
}

async fn file(api: &Api, request: &HttpRequest, format: Format) -> Result<HttpResponse> {
    let path = BoardPath::of(request)?;
    let board = caller::readable(api, request, &path.board).await?;
    let query: ExportQuery = query::parse(request)?;
    let selector = query::selector(query.period.as_deref())?;
    let network = address::of(api, request).map(address::network);
    let slot = api.files.take(network, caller::has_key(api, request)).await?;
    let export = export::begin(&api.instance.rankings, &board, &selector, format).await?;
    let (media_type, ending) = match format {
        Format::Csv => ("text/csv; charset=utf-8; header=present", "csv"),
        Format::Ndjson => ("application/x-ndjson", "ndjson"),
    };
    // Neither a slug nor a period has a character that would have to be quoted; on some systems a file cannot have a colon in its name.
    let name = format!("{}-{}.{ending}", board.slug, export.header.period.name().replace(':', "-"));
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
    let until = Instant::now() + SENT_WITHIN;
    let sending = Sending { export, until, activity, answering: None, _slot: slot };
    Ok(response.streaming(stream::try_unfold(sending, Sending::next)))
}

/// A file on its way.
struct Sending {
    export: Export,
    until: Instant,
    activity: Option<Rc<Activity>>,
    /// From the first piece on: the request counts as answered by then, and its connection would be closed for being idle.
    answering: Option<Answering>,
    _slot: Slot,
}

impl Sending {
    /// The next piece. An error has the connection closed without an end of the file.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        if let Some(activity) = self.activity.take() {
            self.answering = Some(activity.answering());
        }
        let piece = timeout_at(self.until, self.export.read_on()).await;
        let piece = piece.unwrap_or_else(|_| Err(Error::TooSlow("the file was not taken in time".to_owned())));
        match piece {
            Ok(piece) => Ok(piece.map(|piece| (Bytes::from(piece), self))),
            Err(error) => {
                tracing::warn!(%error, "a file was broken off");
                Err(error)
            }
        }
    }
}
