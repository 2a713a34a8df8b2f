//! Redis is killed, emptied, frozen, and answers garbage: no answer is wrong, and none waits for
//! Redis.
//!
//! Only Redis may differ between the phases, but the tests' shared PostgreSQL never vacuums: dead
//! rows made reads of the last phases twenty times as slow as those of the first. So the trial has a
//! server of its own. That looks for tables to vacuum every two seconds. The default is a minute,
//! which is too long for phases of 15 seconds.

use std::{
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

use centile::dev::local::PostgresOptions;
use deadpool_redis::redis::cmd;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sqlx::{PgPool, raw_sql};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    common::percentile,
    report::Trial,
    support::{
        Serve, audit,
        corrupter::Corrupter,
        load::{Load, key},
        own_postgres, own_redis,
        record::Record,
        redis_connection, verdict,
    },
};

/// Prefix of the keys in Redis.
const PREFIX: &str = "trial:";
/// Duration of the phase without faults, and of each fault except the longest.
const PHASE_DURATION: Duration = Duration::from_secs(15);
/// Time for which Redis is frozen.
const FROZEN: Duration = Duration::from_mins(1);
/// Time within which instances must begin to skip Redis.
const SKIPPED_WITHIN: Duration = Duration::from_secs(1);
/// Allowed latency, as a multiple of the latency without faults.
const MAX_SLOWDOWN: f64 = 3.0;

/// Returns the number of reads in a span of time, and the 99th percentile of their latencies in
/// milliseconds.
fn reads(record: &Record, from: Instant, to: Instant) -> (usize, f64) {
    let of_phase = record.answers.iter().filter(|answer| from <= answer.sent_at && answer.sent_at < to);
    let mut latencies: Vec<f64> =
        of_phase.map(|answer| (answer.done_at - answer.sent_at).as_secs_f64() * 1_000.0).collect();
    (latencies.len(), percentile(&mut latencies, 99.0))
}

/// Answers every command with garbage, at the port of a stopped Redis.
async fn answer_garbage(port: u16) -> JoinHandle<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("the port of Redis");
    tokio::spawn(async move {
        loop {
            let (mut caller, _) = listener.accept().await.expect("a caller");
            tokio::spawn(async move {
                let (mut rng, mut asked) = (StdRng::seed_from_u64(rand::random()), [0; 1024]);
                while let Ok(1..) = caller.read(&mut asked).await {
                    let mut answer = [0; 256];
                    rng.fill_bytes(&mut answer);
                    // Sometimes it looks like the start of a valid answer.
                    answer[0] = *b"+-:$*_~x".get(usize::from(answer[1] % 8)).expect("one of eight");
                    if caller.write_all(&answer).await.is_err() {
                        return;
                    }
                }
            });
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_failure_of_redis_makes_answers_wrong_or_slow() {
    let mut trial = Trial::begin(
        "redis",
        "Redis killed, flushed, frozen for 60 s, answering garbage",
        "no wrong rank, no 5xx; p99 at most 3 times the normal one from 1 s on",
    );
    let settings = vec![("autovacuum_naptime".to_owned(), "2s".to_owned())];
    let postgres = own_postgres(PostgresOptions { settings, ..PostgresOptions::ephemeral() }).await;
    let database = postgres.url("postgres");
    let pool = PgPool::connect(&database).await.expect("the database");
    raw_sql(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
         SELECT centile.create_board('first', '{\"mode\": \"best\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 1, \"first_layout\": {\"bounds\": [0,2,4]}}')",
    )
    .execute(&pool)
    .await
    .expect("boards");
    let mut redis = own_redis();
    let spawn = async || {
        let (database, url) = (database.clone(), redis.url());
        let spawning = tokio::task::spawn_blocking(move || Serve::spawn(&database, Some(&url), PREFIX, &[]));
        spawning.await.expect("a service")
    };
    let instances = [spawn().await, spawn().await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let mut load = Load::new(urls, &["shared", "first"], key(&database, "admin"));
    load.idle = Duration::ZERO;
    let load = Arc::new(load);
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });
    let mut phases = Vec::new();
    let mut phase = |name: &'static str, began: Instant| phases.push((name, began, Instant::now()));
    let pass = async |time: Duration| tokio::time::sleep(time).await;

    // Warms up plans and connections.
    pass(Duration::from_secs(5)).await;
    let began = Instant::now();
    pass(PHASE_DURATION).await;
    phase("normal", began);

    let began = Instant::now();
    redis.kill_hard().expect("a dead Redis");
    pass(PHASE_DURATION).await;
    phase("killed", began);
    redis.start_again().expect("Redis is back");
    pass(Duration::from_secs(3)).await;

    let began = Instant::now();
    let mut connection = redis_connection(&redis.url()).await;
    while began.elapsed() < PHASE_DURATION {
        cmd("FLUSHALL").exec_async(&mut connection).await.expect("an empty Redis");
        pass(Duration::from_millis(100)).await;
    }
    phase("flushed ten times a second", began);

    let began = Instant::now();
    redis.pause().expect("a frozen Redis");
    pass(FROZEN).await;
    phase("frozen", began);
    redis.resume().expect("SIGCONT");
    pass(Duration::from_secs(3)).await;

    let began = Instant::now();
    let mut corrupter = Corrupter::new(&redis, PREFIX.to_owned()).await;
    corrupter.corrupt_for(PHASE_DURATION).await;
    phase("values overwritten", began);

    redis.kill_hard().expect("a dead Redis");
    let babble = answer_garbage(redis.port()).await;
    let began = Instant::now();
    pass(PHASE_DURATION).await;
    phase("answering garbage", began);
    babble.abort();

    stop.cancel();
    record.join(running.await.expect("no answer is a failure of the service"));
    let verdict = verdict::of(&pool, &load, &record).await;
    let answers: usize = verdict.answers.values().sum();
    trial.expect(verdict.wrong.is_empty(), format!("{} of {answers} answers wrong, none 5xx", verdict.wrong.len()));
    let (_, from, to) = phases.remove(0);
    let (_, normal) = reads(&record, from, to);
    trial.saw(format!("p99 of reads {normal:.0} ms"));
    for (name, from, to) in phases {
        let (count, p99) = reads(&record, from + SKIPPED_WITHIN, to);
        trial.expect(count > 0 && p99 <= MAX_SLOWDOWN * normal, format!("{name} {p99:.0} ms"));
    }
    verdict.expect_right("Redis fails");
    audit::rankings_are_sound(&pool).await;
    trial.end();
}
