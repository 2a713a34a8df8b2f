//! Headers that tell callers how recent a response is. They matter if instances read from a
//! replica.
//!
//! The response to a write names batches of the board in `Centile-Version`. A read that sends these
//! batches in `Centile-Min-Version` contains the write.

use std::{sync::Arc, time::Duration};

use actix_web::{
    Error, HttpMessage as _, HttpRequest,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header::{HeaderName, HeaderValue},
    middleware::Next,
    web::Data,
};

use crate::{
    Result,
    http::server::Api,
    model::{batches::BoardBatches, board::Board},
    ranking::rankings::Rankings,
};

/// Header of a response to a write: batches of the board that contain the write.
const VERSION: HeaderName = HeaderName::from_static("centile-version");

/// Header of a read: the [`VERSION`] of earlier responses, whose writes the answer must contain.
const MIN_VERSION: HeaderName = HeaderName::from_static("centile-min-version");

/// Header of a read from a replica: upper bound of its lag, in seconds.
const LAG: HeaderName = HeaderName::from_static("centile-lag");

/// Maximum boards in [`MIN_VERSION`].
const BOARDS_MAX: usize = 100;

/// Longest value of [`VERSION`]. Proxies refuse responses with much longer headers.
const VERSION_MAX_BYTES: usize = 2_048;

struct WrittenBoards(Vec<i32>);

/// The lag of the replica that a request reads from.
struct ReplicaLag(Duration);

impl Api {
    /// Returns the server for a read. It contains the writes that the caller names in
    /// `Centile-Min-Version`.
    ///
    /// Returns [`crate::Error::Invalid`] for a malformed header.
    pub(crate) async fn rankings_for(&self, request: &HttpRequest) -> Result<&Arc<Rankings>> {
        let wanted = wanted(request)?;
        let (rankings, lag) = self.instance.read_router.containing(&wanted).await;
        if let Some(lag) = lag {
            request.extensions_mut().insert(ReplicaLag(lag));
        }
        Ok(rankings)
    }
}

/// Notes that the request has written to a board.
pub(crate) fn record_write(request: &HttpRequest, board: &Board) {
    let mut notes = request.extensions_mut();
    match notes.get_mut::<WrittenBoards>() {
        Some(WrittenBoards(boards)) => boards.push(board.owner),
        None => drop(notes.insert(WrittenBoards(vec![board.owner]))),
    }
}

/// Returns the writes that the answer to a read must contain.
///
/// Returns [`crate::Error::Invalid`] for a malformed header.
fn wanted(request: &HttpRequest) -> Result<Vec<BoardBatches>> {
    let mut wanted = Vec::new();
    for value in request.headers().get_all(MIN_VERSION) {
        wanted.extend(BoardBatches::parse_all(value.to_str().unwrap_or_default())?);
    }
    if wanted.len() > BOARDS_MAX {
        return Err(crate::Error::invalid("Centile-Min-Version", format!("must name at most {BOARDS_MAX} boards")));
    }
    Ok(wanted)
}

/// Adds the headers to a response.
pub(crate) async fn name(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> std::result::Result<ServiceResponse<impl MessageBody>, Error> {
    let mut response = next.call(request).await?;
    let (version, lag) = {
        let request = response.request();
        let notes = request.extensions();
        let version = notes.get::<WrittenBoards>().zip(request.app_data::<Data<Api>>()).map(|(written, api)| {
            let acknowledged = &api.instance.rankings.acknowledged;
            let reached = |id: &i32| BoardBatches { board_id: *id, batches: acknowledged.batches(*id) };
            let reached = written.0.iter().map(reached).filter(|reached| !reached.batches.is_empty());
            reached.map(|reached| reached.to_string()).collect::<Vec<_>>().join(",")
        });
        let version = version.filter(|text| (1..=VERSION_MAX_BYTES).contains(&text.len()));
        (version, notes.get::<ReplicaLag>().map(|ReplicaLag(lag)| format!("{:.3}", lag.as_secs_f64())))
    };
    for (name, value) in [(VERSION, version), (LAG, lag)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
