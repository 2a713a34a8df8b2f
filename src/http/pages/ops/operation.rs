//! Data of the operator's page: rows of views, and the state of this instance.

use std::time::Duration;

use crate::{
    Result, boards,
    delivery::outbox,
    instance::Instance,
    model::{
        board::{Board, BoardFilter, BoardSlug},
        operation::{AuditEntry, BucketStatus, LedgerAhead, PeriodStatus},
        outbox::{Message, MessageFilter},
        template::Template,
    },
    ranking::index_registry::status::IndexStatus,
    store::{
        cluster::Server,
        upkeep::{StoredLimits, StoredUpkeep},
    },
    telemetry::recent::{self, Minute},
};

/// Maximum number of periods. The query returns those with problems first.
pub(crate) const PERIODS_MAX: u32 = 500;

/// Maximum number of rankings whose buckets are shown.
const RANKINGS_MAX: u32 = 12;

const BUCKETS: u32 = 100;

/// Maximum number of administrative actions, and of webhook messages.
const LATEST: u32 = 20;

/// Data of the page. Each part is read separately, at a slightly different time.
#[derive(Debug)]
pub(crate) struct Operation {
    /// `None` while a worker of a cluster is down: most views need all lanes.
    pub(crate) stored: Option<Stored>,
    pub(crate) status: InstanceStatus,
    /// The servers of a cluster; none on a single server.
    pub(crate) servers: Vec<Server>,
    /// The last minutes of this process, oldest first.
    pub(crate) minutes: Vec<Minute>,
}

/// The part of the page that comes from SQL views.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Boards of their own.
    pub(crate) boards: Vec<Board>,
    pub(crate) templates: Vec<Template>,
    pub(crate) upkeep: StoredUpkeep,
    pub(crate) limits: StoredLimits,
    /// `None` on a cluster, whose ledger needs no months.
    pub(crate) ledger: Option<LedgerAhead>,
    pub(crate) periods: Vec<PeriodStatus>,
    /// The selected board, or the first, with the buckets of its rankings; `None` without boards.
    pub(crate) selected: Option<(BoardSlug, Vec<BucketStatus>)>,
    /// Webhook messages waiting for delivery, newest first.
    pub(crate) waiting: Vec<Message>,
    /// Latest administrative actions, newest first.
    pub(crate) acts: Vec<AuditEntry>,
}

#[derive(Debug, Default)]
pub(crate) struct InstanceStatus {
    /// PostgreSQL connections: those in use, and all.
    pub(crate) connections: (u32, u32),
    /// Whether Redis answers; `None` without Redis.
    pub(crate) redis_answers: Option<bool>,
    pub(crate) maintenance: MaintenanceStatus,
    /// Wrong bucket counts that maintenance has found.
    pub(crate) count_differences: usize,
    pub(crate) indexes: Vec<IndexStatus>,
}

#[derive(Debug, Default)]
pub(crate) enum MaintenanceStatus {
    #[default]
    Off,
    /// Maintenance has not run yet.
    Pending,
    /// Time since maintenance last closed all due periods.
    Ran(Duration),
}

/// Reads the data of the page, with the buckets of the board `selected`, or of the first board.
/// [`Error::NotFound`](crate::Error::NotFound) for an unknown board, unless a worker is down.
pub(crate) async fn read_operation(instance: &Instance, selected: Option<&BoardSlug>) -> Result<Operation> {
    let servers = instance.store.cluster_status().await?;
    let stored = if servers.iter().any(Server::hides_lanes) { None } else { Some(stored(instance, selected).await?) };
    Ok(Operation { stored, status: status(instance).await, servers, minutes: recent::minutes() })
}

async fn stored(instance: &Instance, selected: Option<&BoardSlug>) -> Result<Stored> {
    let boards = boards::list(&instance.store.reader, BoardFilter::default()).await?;
    let selected = match selected {
        Some(slug) => Some(boards::find(&instance.boards, slug).await?.slug.clone()),
        None => boards.first().map(|board| board.slug.clone()),
    };
    let buckets = async {
        match selected {
            Some(slug) => {
                let buckets =
                    instance.store.reader.bucket_occupancy(slug.as_str(), (RANKINGS_MAX * BUCKETS).into()).await?;
                Ok(Some((slug, buckets)))
            }
            None => Ok(None),
        }
    };
    let filter = MessageFilter { board: None, waiting: true, limit: LATEST };
    let (templates, upkeep, limits, ledger, periods, selected, waiting, acts) = futures::try_join!(
        instance.store.reader.templates(None),
        instance.store.reader.upkeep(),
        instance.store.reader.database_limits(),
        instance.store.reader.ledger_ahead(),
        instance.store.reader.period_status(PERIODS_MAX.into()),
        buckets,
        outbox::list(&instance.boards, &filter),
        instance.store.reader.last_acts(LATEST.into()),
    )?;
    Ok(Stored { boards, templates, upkeep, limits, ledger, periods, selected, waiting, acts })
}

async fn status(instance: &Instance) -> InstanceStatus {
    let connections =
        instance.store.connections().into_iter().fold((0, 0), |(busy, all), (_, state, connections)| match state {
            "busy" => (busy + connections, all + connections),
            _ => (busy, all + connections),
        });
    let redis_answers = instance.cache.answers().await;
    let scheduler = instance.maintenance.as_ref();
    let maintenance = match scheduler.map(|scheduler| scheduler.since_last_run()) {
        None => MaintenanceStatus::Off,
        Some(None) => MaintenanceStatus::Pending,
        Some(Some(time)) => MaintenanceStatus::Ran(time),
    };
    InstanceStatus {
        connections,
        redis_answers,
        maintenance,
        count_differences: scheduler.map_or(0, |scheduler| scheduler.count_differences()),
        indexes: instance.read_router.current().indexes.status().0,
    }
}
