//! PostgreSQL cut off, by reset and by silence: every call ends by its deadline, nothing acknowledged is lost, and all is well again soon
//! after. (`make torture` cuts it off for thirty seconds, with the service's own limits.)

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use reqwest::StatusCode;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Serve, TestDb, audit, client,
    load::key,
    proxy::{Proxy, Way},
    sender::Sender,
};

/// Callers of each kind.
const CALLERS: usize = 16;
/// How soon after the cut all connections have to be usable again.
const WHOLE_AGAIN: Duration = Duration::from_secs(5);

/// How long statements may run, and how long the way is cut.
struct Limits {
    statement: Duration,
    cut: Duration,
}

impl Limits {
    /// The longest that a call may take: for a connection, for its statement and the way back, and once more for each, since what is
    /// shared is asked again where the first caller went away.
    fn deadline(&self) -> Duration {
        2 * (Duration::from_secs(2) + self.statement + Duration::from_secs(2)) + Duration::from_secs(1)
    }
}

/// Reads until told to stop; gives the longest time that an answer took.
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

/// Whether as many callers as there are connections are all answered at once.
async fn all_are_answered(url: &str) -> bool {
    let client = client();
    let answers =
        (0..2 * CALLERS).map(|caller| {
            let get = client.get(format!("{url}/v1/boards/arena/scores?from={}", caller + 1));
            async move {
                get.timeout(Duration::from_secs(1)).send().await.is_ok_and(|answer| answer.status() == StatusCode::OK)
            }
        });
    join_all(answers).await.into_iter().all(|is_well| is_well)
}

async fn cut_off(ways: &[Way], limits: &Limits) {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', p_lanes => 4::smallint)").await;
    let proxy = Proxy::to(db.port()).await;
    let (url, flags) =
        (proxy.instead(db.url()), ["--statement-timeout".to_owned(), limits.statement.as_secs().to_string()]);
    let prefix = db.redis_prefix();
    let serve =
        tokio::task::spawn_blocking(move || Serve::spawn(&url, None, &prefix, &flags)).await.expect("a service");
    let sender = Arc::new(Sender::new(key(db.url(), "server")));
    let (address, stop) = (format!("{}/v1/boards/arena/scores", serve.url), CancellationToken::new());
    let (mut writers, mut readers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..CALLERS {
        let (sender, address, stop) = (Arc::clone(&sender), address.clone(), stop.clone());
        writers.spawn(async move { sender.run(&address, &stop).await });
    }
    let before = sender.wait_for_more(300).await;
    for _ in 0..CALLERS {
        readers.spawn(read(serve.url.clone(), stop.clone()));
    }
    for way in ways {
        proxy.set(*way);
        tokio::time::sleep(limits.cut).await;
        let refused = sender.counts().2;
        proxy.set(Way::Open);
        let healed = Instant::now();
        while !all_are_answered(&serve.url).await {
            assert!(healed.elapsed() < WHOLE_AGAIN, "{way:?}: not all connections are usable again");
        }
        sender.wait_for_more(300).await;
        eprintln!("{way:?} for {:?}: {refused} times 503 so far, whole again after {:?}", limits.cut, healed.elapsed());
    }
    stop.cancel();
    writers.join_all().await;
    let longest = readers.join_all().await.into_iter().max().unwrap_or_default();
    eprintln!("{before} events before; the longest read took {longest:?} of {:?}", limits.deadline());
    assert!(longest <= limits.deadline(), "a read took {longest:?}");
    sender.finish(&address).await;
    assert!(sender.counts().2 > 0, "the cut was noticed");
    let pool = db.pool().await;
    sender.expect_all_once(&pool).await;
    assert_eq!(audit::rankings_are_sound(&pool).await, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_cuts_postgresql_off_every_call_ends_and_all_is_well_again() {
    let limits = Limits { statement: Duration::from_secs(1), cut: Duration::from_secs(6) };
    cut_off(&[Way::Reset, Way::Silent], &limits).await;
}
