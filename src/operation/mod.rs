//! How the service is, for whoever runs it: what views and numbers say, put together. There is nothing here that is not to be had in `psql`
//! or at `/metrics`.

pub(crate) mod numbers;

use chrono::{DateTime, Utc};

use crate::{
    Result,
    board::{self, Board, BoardSlug},
    outbox::{self, Event},
    ranking::IndexStatus,
    service::Service,
    store::upkeep::StoredUpkeep,
    telemetry,
};
use numbers::Numbers;

/// Most periods: with those that wait first, none of these is left out before there are hundreds.
pub(crate) const PERIODS_MAX: u32 = 500;
/// Most rankings whose buckets are shown.
const RANKINGS_MAX: u32 = 12;
/// Buckets of a ranking.
const BUCKETS: u32 = 100;
/// Acts and events, the newest.
const LATEST: u32 = 20;

/// How a period is.
#[derive(Debug)]
pub(crate) struct PeriodStatus {
    pub(crate) board: String,
    pub(crate) kind: String,
    pub(crate) label: String,
    /// `open`, `due`, `closing` or `closed`.
    pub(crate) state: String,
    /// First instant after it; absent for `all_time`.
    pub(crate) ends_at: Option<DateTime<Utc>>,
    pub(crate) players: i64,
    /// Absent once its archive is dropped.
    pub(crate) version: Option<String>,
    /// Players of whom live ranking and ledger said different things when it was closed.
    pub(crate) differences: i64,
    /// Whether its archive lacks a correction.
    pub(crate) needs_refresh: bool,
}

/// How far the ledger goes.
#[derive(Debug)]
pub(crate) struct LedgerAhead {
    /// Months that are still to come.
    pub(crate) months: i64,
    /// Whether the last month begins within a month, or there is none.
    pub(crate) ends_soon: bool,
}

/// A bucket of an open ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketStatus {
    pub(crate) kind: String,
    pub(crate) label: String,
    pub(crate) bucket: i16,
    pub(crate) players: i64,
    /// Worst score at which it begins, and where the next better one does; absent where there is no end, and in buckets without a range.
    pub(crate) from_score: Option<i64>,
    pub(crate) to_score: Option<i64>,
}

/// What an administrator did.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) happened_at: DateTime<Utc>,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) board: Option<String>,
    pub(crate) subject: Option<String>,
}

/// All of it. Each part is of a moment of its own.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) boards: Vec<Board>,
    /// What is left to do.
    pub(crate) upkeep: StoredUpkeep,
    pub(crate) ledger: LedgerAhead,
    pub(crate) periods: Vec<PeriodStatus>,
    /// The board that was chosen, or the first, with its rankings' buckets; none where there is no board.
    pub(crate) chosen: Option<(BoardSlug, Vec<BucketStatus>)>,
    /// Events that wait to be sent, the newest first.
    pub(crate) waiting: Vec<Event>,
    /// What administrators did last, the newest first.
    pub(crate) acts: Vec<Act>,
    /// The rank indexes of this instance.
    pub(crate) indexes: Vec<IndexStatus>,
    /// What this instance has counted.
    pub(crate) numbers: Numbers,
}

/// Reads it all, with the buckets of the board `chosen`, or else of the first. [`Error::NotFound`](crate::Error::NotFound) when there is no
/// such board.
pub(crate) async fn read(service: &Service, chosen: Option<&BoardSlug>) -> Result<Operation> {
    let boards = board::list(service).await?;
    let chosen = match chosen {
        Some(slug) => Some(board::find(service, slug).await?.slug.clone()),
        None => boards.first().map(|board| board.slug.clone()),
    };
    let buckets = async {
        match chosen {
            Some(slug) => {
                let buckets = service.store.bucket_occupancy(slug.as_str(), (RANKINGS_MAX * BUCKETS).into()).await?;
                Ok(Some((slug, buckets)))
            }
            None => Ok(None),
        }
    };
    let wanted = outbox::Wanted { board: None, waiting: true, limit: LATEST };
    let (upkeep, ledger, periods, chosen, waiting, acts) = futures::try_join!(
        service.store.upkeep(),
        service.store.ledger_ahead(),
        service.store.period_status(PERIODS_MAX.into()),
        buckets,
        outbox::list(service, &wanted),
        service.store.last_acts(LATEST.into()),
    )?;
    // After the rest, whose connections would be among what is busy.
    let numbers = telemetry::render(service).await?;
    let (indexes, _) = service.indexes.status();
    let numbers = Numbers::read(&numbers);
    Ok(Operation { boards, upkeep, ledger, periods, chosen, waiting, acts, indexes, numbers })
}
