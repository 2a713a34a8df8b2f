//! The design load for a long time, with a fault each minute: derived data always agree with the
//! ledger, and memory does not grow. `CENTILE_SOAK_MINUTES` changes the duration,
//! `CENTILE_SOAK_SCORES` the scores a second.

use std::{
    collections::BTreeMap,
    env,
    fmt::Display,
    str::FromStr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use centile::dev::local::{LocalPostgres, LocalRedis, PostgresOptions};
use deadpool_redis::redis::cmd;
use rand::seq::SliceRandom as _;
use reqwest::{Client, RequestBuilder};
use sqlx::PgPool;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::{
    common::load::Load,
    probe::{self, memory_mb, until_recovered},
    report::{Trial, seconds},
    support::{
        Serve, audit,
        load::key,
        own_postgres, own_redis,
        proxy::{Proxy, Way},
        redis_connection,
        sender::Sender,
    },
};

/// The design load: scores, ranks and top lists a second.
const SCORES: u32 = 2_500;
const RANKS: u32 = 250;
const TOPS: u32 = 50;
/// Players of the large board.
const PLAYERS: u64 = 20_000;
/// Duration of a fault that lasts.
const FAULT: Duration = Duration::from_secs(10);

/// A fault.
#[derive(Debug, Clone, Copy)]
enum Fault {
    ServiceKilled,
    PostgresKilled,
    RedisKilled,
    RedisFlushed,
    RedisFrozen,
    CutOffByReset,
    CutOffBySilence,
}

const FAULTS: [Fault; 7] = [
    Fault::ServiceKilled,
    Fault::PostgresKilled,
    Fault::RedisKilled,
    Fault::RedisFlushed,
    Fault::RedisFrozen,
    Fault::CutOffByReset,
    Fault::CutOffBySilence,
];

/// Returns a setting from the environment.
fn setting<T: FromStr<Err: Display>>(name: &str, default: T) -> T {
    let wanted = env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")));
    wanted.unwrap_or(default)
}

/// The servers, an instance that is killed, and one that runs throughout.
struct Site {
    postgres: LocalPostgres,
    redis: LocalRedis,
    way: Proxy,
    mortal: Serve,
    lasting: Serve,
    /// The addresses for requests.
    addresses: Arc<Mutex<[String; 2]>>,
}

impl Site {
    async fn start() -> Self {
        let postgres = own_postgres(PostgresOptions { fsync: true, ..PostgresOptions::ephemeral() }).await;
        let redis = own_redis();
        let way = Proxy::to(postgres.port()).await;
        let url = way.instead(&postgres.url("postgres"));
        let (mortal, lasting) = (spawn(&url, &redis).await, spawn(&url, &redis).await);
        let addresses = Arc::new(Mutex::new([mortal.url.clone(), lasting.url.clone()]));
        Self { postgres, redis, way, mortal, lasting, addresses }
    }

    async fn apply(&mut self, fault: Fault) {
        let pass = async || tokio::time::sleep(FAULT).await;
        match fault {
            Fault::ServiceKilled => {
                self.mortal.kill();
                let url = self.way.instead(&self.postgres.url("postgres"));
                self.mortal = spawn(&url, &self.redis).await;
                self.addresses.lock().expect("no panic")[0].clone_from(&self.mortal.url);
            }
            Fault::PostgresKilled => {
                let postgres = &mut self.postgres;
                block_in_place(|| postgres.kill_hard().and_then(|()| postgres.start_again()))
                    .expect("PostgreSQL is back");
            }
            Fault::RedisKilled => {
                block_in_place(|| self.redis.kill_hard()).expect("a dead Redis");
                pass().await;
                block_in_place(|| self.redis.start_again()).expect("Redis is back");
            }
            Fault::RedisFlushed => {
                cmd("FLUSHALL")
                    .exec_async(&mut redis_connection(&self.redis.url()).await)
                    .await
                    .expect("an empty Redis");
            }
            Fault::RedisFrozen => {
                self.redis.pause().expect("a frozen Redis");
                pass().await;
                self.redis.resume().expect("SIGCONT");
            }
            Fault::CutOffByReset | Fault::CutOffBySilence => {
                self.way.set(if matches!(fault, Fault::CutOffByReset) { Way::Reset } else { Way::Silent });
                pass().await;
                self.way.set(Way::Open);
            }
        }
    }
}

async fn spawn(database_url: &str, redis: &LocalRedis) -> Serve {
    let (database_url, redis) = (database_url.to_owned(), redis.url());
    let flags = ["--maintenance-every".to_owned(), "10".to_owned(), "--log".to_owned(), "error".to_owned()];
    tokio::task::spawn_blocking(move || Serve::spawn(&database_url, Some(&redis), "soak", &flags))
        .await
        .expect("a service")
}

/// Sends requests of one kind, to each instance in turn.
fn to_each(
    addresses: &Arc<Mutex<[String; 2]>>,
    request: impl Fn(&Client, String) -> RequestBuilder + Send + 'static,
) -> impl Fn() -> RequestBuilder + Send + 'static {
    let (client, addresses) =
        (Client::builder().timeout(Duration::from_secs(40)).build().expect("a client"), Arc::clone(addresses));
    move || {
        let instance = usize::from(rand::random::<bool>());
        let address = addresses.lock().expect("no panic")[instance].clone();
        request(&client, format!("{address}/v1/boards/large/scores"))
    }
}

fn loads(site: &Site, key: String, scores: u32) -> [(&'static str, Load); 3] {
    let anyone = || rand::random_range(0..PLAYERS);
    let share = |rate: u32| (rate * scores).div_ceil(SCORES);
    let score = move |client: &Client, url: String| {
        let body = format!(r#"{{"user_id": "player-{}", "points": {}}}"#, anyone(), rand::random_range(0..1_000));
        client.post(url).bearer_auth(&key).header("content-type", "application/json").body(body)
    };
    let rank = move |client: &Client, url: String| client.get(format!("{url}/player-{}?period=week", anyone()));
    let top = |client: &Client, url: String| client.get(format!("{url}?limit=10"));
    [
        ("scores", Load::start(scores, to_each(&site.addresses, score))),
        ("ranks", Load::start(share(RANKS), to_each(&site.addresses, rank))),
        ("tops", Load::start(share(TOPS), to_each(&site.addresses, top))),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_design_load_survives_a_fault_each_minute() {
    let (minutes, scores): (u32, u32) = (setting("CENTILE_SOAK_MINUTES", 30), setting("CENTILE_SOAK_SCORES", SCORES));
    let mut trial = Trial::begin(
        "soak",
        format!("{minutes} min of {scores} scores a second, with ranks and tops, and a fault a minute"),
        "audit clean at each minute, nothing acknowledged lost, memory flat",
    );
    let mut site = Site::start().await;
    let url = site.postgres.url("postgres");
    let pool = PgPool::connect(&url).await.expect("a connection");
    for board in [
        "SELECT centile.create_board('large', '{\"lanes\": 4}')",
        "SELECT centile.create_board('arena', '{\"lanes\": 2}')",
        probe::BOARD,
    ] {
        sqlx::raw_sql(board).execute(&pool).await.expect("a board");
    }
    pool.close().await;
    // Besides the load, callers that record what was acknowledged.
    let (sender, stop) = (Arc::new(Sender::new(key(&url, "server"))), CancellationToken::new());
    let callers = sender.spawn(2, &site.lasting.at("/v1/boards/arena/scores"), &stop);
    let probing = key(&url, "server");
    let loads = loads(&site, key(&url, "server"), scores);

    let (begin, mut faults, mut memory) = (Instant::now(), Vec::new(), Vec::new());
    let (mut longest, mut audited) = (Duration::ZERO, Duration::ZERO);
    for minute in 1..=minutes {
        if faults.is_empty() {
            faults = FAULTS.to_vec();
            faults.shuffle(&mut rand::rng());
        }
        let fault = faults.pop().expect("a fault");
        tokio::time::sleep(Duration::from_secs(10)).await;
        site.apply(fault).await;
        let healed = Instant::now();
        let well = until_recovered(&site.mortal, &probing, healed)
            .await
            .max(until_recovered(&site.lasting, &probing, healed).await);
        longest = longest.max(well);
        let pool = PgPool::connect(&url).await.expect("a connection");
        let looking = Instant::now();
        audit::rankings_are_sound(&pool).await;
        audited = audited.max(looking.elapsed());
        pool.close().await;
        memory.push(memory_mb(site.lasting.id(), "VmRSS"));
        println!(
            "minute {minute}: {fault:?}, recovered after {}, audit clean, {:.0} MB",
            seconds(well),
            memory[memory.len() - 1]
        );
        tokio::time::sleep_until((begin + Duration::from_mins(1) * minute).into()).await;
    }
    trial.saw(format!(
        "{minutes} audits clean, the longest took {}; recovered at most {} after a fault",
        seconds(audited),
        seconds(longest)
    ));
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    for (what, load) in loads {
        load.stop().await;
        let latency = load.latency(begin, begin + Duration::from_mins(1) * minutes);
        trial.saw(format!(
            "{} {what}, {} of them not answered 200 (404 for a player without a score), p50 {:.0} ms",
            latency.answers, latency.failed, latency.p50
        ));
        for (answer, count) in load.said() {
            *said.entry(answer.split(' ').next().unwrap_or_default().to_owned()).or_default() += count;
        }
    }
    let unexpected: Vec<_> = said.iter().filter(|(status, _)| status.starts_with('5') && *status != "503").collect();
    trial.expect(unexpected.is_empty(), format!("answers 5xx but 503: {unexpected:?}"));
    stop.cancel();
    callers.join_all().await;
    sender.finish(&site.lasting.at("/v1/boards/arena/scores")).await;
    let pool = PgPool::connect(&url).await.expect("a connection");
    sender.expect_all_once(&pool).await;
    trial.saw(format!("{} events of recording callers, each in the ledger once", sender.counts().0));
    let third = memory.len().div_ceil(3);
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let (first, last) = (most(&memory[..third]), most(&memory[memory.len() - third..]));
    trial.expect(
        last <= first * 1.2 + 16.0,
        format!("memory {first:.0} MB at most in the first third, {last:.0} MB in the last"),
    );
    trial.end();
}
