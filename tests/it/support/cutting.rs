//! A service that loses its connection to PostgreSQL under load.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use reqwest::StatusCode;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    Serve, TestDb, amount, audit, client,
    load::key,
    proxy::{Proxy, Way},
    sender::Sender,
    wait::until,
};

/// Callers of each kind.
const CALLERS: usize = 16;

/// The statement timeout, and the minimum duration of a cut. A cut lasts until all writers have
/// noticed it.
#[derive(Debug)]
pub struct Limits {
    pub statement: Duration,
    pub cut: Duration,
}

impl Limits {
    /// Maximum duration of a call: waiting for a connection, the statement and the way back. Each
    /// counts twice, because a shared read is repeated when its first caller disconnects.
    pub fn deadline(&self) -> Duration {
        2 * (Duration::from_secs(2) + self.statement + Duration::from_secs(2)) + Duration::from_secs(1)
    }
}

/// The measurements of a run.
#[derive(Debug)]
pub struct Seen {
    /// The longest duration of a read.
    pub longest_read: Duration,
    /// Time after each cut until all connections were usable again.
    pub recovery_times: Vec<Duration>,
    /// Answers 503 to writers.
    pub unavailable: usize,
    /// Acknowledged events, each of which is in the ledger once.
    pub acknowledged: usize,
}

/// Reads until `stop`; returns the longest duration of an answer.
async fn read(url: String, stop: CancellationToken) -> Duration {
    let (client, mut longest) = (client(), Duration::ZERO);
    let mut number = 0;
    while !stop.is_cancelled() {
        number += 1;
        let path = match number % 4 {
            0 => format!("/v1/boards/arena/scores/p{}", number % 200),
            1 => "/v1/boards/arena/scores?from=3".to_owned(),
            2 => "/v1/boards/arena/rank?score=5".to_owned(),
            _ => "/v1/boards/arena".to_owned(),
        };
        let begin = Instant::now();
        let status = client.get(format!("{url}{path}")).send().await.expect("an answer").status();
        longest = longest.max(begin.elapsed());
        let is_allowed = [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
        assert!(is_allowed, "{path}: {status}");
    }
    longest
}

/// Returns whether as many concurrent callers as there are connections all get an answer.
async fn all_are_answered(url: &str) -> bool {
    // `make torture` measures the time, so a call that hangs is repeated soon. Otherwise a busy
    // machine gets more time.
    let (client, timeout) = (client(), Duration::from_secs(amount(20, 1)));
    let answers = (0..2 * CALLERS).map(|caller| {
        let get = client.get(format!("{url}/v1/boards/arena/scores?from={}", caller + 1));
        async move { get.timeout(timeout).send().await.is_ok_and(|answer| answer.status() == StatusCode::OK) }
    });
    join_all(answers).await.into_iter().all(|is_well| is_well)
}

/// Cuts a service off from PostgreSQL in each of these ways in turn, under load. Every answer must
/// be right or 503, and in the end every acknowledged event must be in the ledger once.
pub async fn cut_off(ways: &[Way], limits: &Limits) -> Seen {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let proxy = Proxy::to(db.port()).await;
    let (url, flags) =
        (proxy.instead(db.url()), ["--statement-timeout".to_owned(), limits.statement.as_secs().to_string()]);
    let prefix = db.redis_prefix();
    let serve =
        tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await.expect("a service");
    let sender = Arc::new(Sender::new(key(db.url(), "server")));
    let (address, stop) = (format!("{}/v1/boards/arena/scores", serve.url), CancellationToken::new());
    let (writers, mut readers) = (sender.spawn(CALLERS, &address, &stop), JoinSet::new());
    let mut recovery_times = Vec::new();
    let before = sender.wait_for_more(100).await;
    for _ in 0..CALLERS {
        readers.spawn(read(serve.url.clone(), stop.clone()));
    }
    for way in ways {
        proxy.set(*way);
        let before = sender.counts().2;
        tokio::time::sleep(limits.cut).await;
        until("every writer gets a 503", async || sender.counts().2 >= before + CALLERS).await;
        let refused = sender.counts().2;
        proxy.set(Way::Open);
        let healed = Instant::now();
        until("all connections are usable again", async || all_are_answered(&serve.url).await).await;
        recovery_times.push(healed.elapsed());
        sender.wait_for_more(100).await;
        eprintln!(
            "{way:?} for {:?}: {refused} times 503 so far, whole again after {:?}",
            limits.cut,
            recovery_times.last()
        );
    }
    stop.cancel();
    writers.join_all().await;
    let longest_read = readers.join_all().await.into_iter().max().unwrap_or_default();
    eprintln!("{before} events before; the longest read took {longest_read:?} of {:?}", limits.deadline());
    sender.finish(&address).await;
    let (acknowledged, _, unavailable) = sender.counts();
    assert!(unavailable > 0, "no request noticed the cut");
    let pool = db.pool().await;
    sender.expect_all_once(&pool).await;
    assert!(audit::rankings_are_sound(&pool).await >= 4);
    Seen { longest_read, recovery_times, unavailable, acknowledged }
}
