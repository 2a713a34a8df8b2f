//! How the service is, for whoever runs it: what views and numbers say, put together. There is nothing here that is not to be had in `psql`
//! or at `/metrics`.

pub(crate) mod numbers;

use crate::{
    Result, boards,
    delivery::outbox,
    http::metrics,
    http::operation::numbers::Numbers,
    instance::Instance,
    model::{
        board::{Board, BoardSlug},
        operation::{Act, BucketStatus, LedgerAhead, PeriodStatus},
        outbox::{Event, Wanted},
    },
    ranking::IndexStatus,
    store::upkeep::StoredUpkeep,
};

/// Most periods: with those that wait first, none of these is left out before there are hundreds.
pub(crate) const PERIODS_MAX: u32 = 500;

/// Most rankings whose buckets are shown.
const RANKINGS_MAX: u32 = 12;

/// Buckets of a ranking.
const BUCKETS: u32 = 100;

/// Acts and events, the newest.
const LATEST: u32 = 20;

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
pub(crate) async fn read(instance: &Instance, chosen: Option<&BoardSlug>) -> Result<Operation> {
    let boards = boards::list(&instance.store).await?;
    let chosen = match chosen {
        Some(slug) => Some(boards::find(&instance.boards, slug).await?.slug.clone()),
        None => boards.first().map(|board| board.slug.clone()),
    };
    let buckets = async {
        match chosen {
            Some(slug) => {
                let buckets = instance.store.bucket_occupancy(slug.as_str(), (RANKINGS_MAX * BUCKETS).into()).await?;
                Ok(Some((slug, buckets)))
            }
            None => Ok(None),
        }
    };
    let wanted = Wanted { board: None, waiting: true, limit: LATEST };
    let (upkeep, ledger, periods, chosen, waiting, acts) = futures::try_join!(
        instance.store.upkeep(),
        instance.store.ledger_ahead(),
        instance.store.period_status(PERIODS_MAX.into()),
        buckets,
        outbox::list(&instance.boards, &wanted),
        instance.store.last_acts(LATEST.into()),
    )?;
    // After the rest, whose connections would be among what is busy.
    let numbers = metrics::render(instance).await?;
    let (indexes, _) = instance.rankings.indexes.status();
    let numbers = Numbers::read(&numbers);
    Ok(Operation { boards, upkeep, ledger, periods, chosen, waiting, acts, indexes, numbers })
}
