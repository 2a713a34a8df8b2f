//! Readers that continue while a period is closed and its archive is released.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::future::join_all;
use rand::{SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};
use sqlx::query_scalar;
use tokio::task::JoinSet;

use super::period::{Past, reads, seen};
use crate::{
    http::api::site::Site,
    support::{PATIENT, Serve, TestDb, amount, redis_url, spawn_serve, wait::until},
};

/// Counts of one instance's answers.
#[derive(Debug, Default)]
struct Counts {
    wrong: Mutex<Vec<String>>,
    open: AtomicUsize,
    closed: AtomicUsize,
    gone: AtomicUsize,
}

impl Counts {
    /// Returns once there are enough more answers of a kind.
    async fn enough(&self, kind: impl Fn(&Self) -> &AtomicUsize) {
        let wanted = kind(self).load(Ordering::SeqCst) + amount(25, 50);
        until("enough answers of a kind", async || kind(self).load(Ordering::SeqCst) > wanted).await;
    }
}

/// Returns once the readers of each instance have enough more answers of a kind.
async fn enough(all: &[Arc<Counts>], kind: impl Fn(&Counts) -> &AtomicUsize) {
    join_all(all.iter().map(|met| met.enough(&kind))).await;
}

async fn read(
    client: reqwest::Client,
    url: String,
    wanted: Arc<BTreeMap<String, Value>>,
    stage: Arc<AtomicUsize>,
    met: Arc<Counts>,
    seed: u64,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    let paths: Vec<&String> = wanted.keys().collect();
    // 0: the archive is kept. 1: it is being released. 2: the end.
    while stage.load(Ordering::SeqCst) < 2 {
        let path = *paths.choose(&mut rng).unwrap();
        let may_be_gone = async || stage.load(Ordering::SeqCst) > 0;
        let answer = client.get(format!("{url}{path}")).send().await.unwrap();
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        if status == 200 && seen(&body) == wanted[path] {
            let kind = if body["period"]["state"] == "closed" { &met.closed } else { &met.open };
            kind.fetch_add(1, Ordering::SeqCst);
        } else if status == 404 && body["detail"].to_string().contains("no longer kept") && may_be_gone().await {
            met.gone.fetch_add(1, Ordering::SeqCst);
        } else {
            met.wrong.lock().unwrap().push(format!("{path}: {status} {body}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_changes_no_answer_to_readers() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &PATIENT).await;
    let past = Past::new(&db, "main", json!({}), &site).await;
    let (players, events) = amount((50, 150), (300, 900));
    past.play(1, players, events, "2024-01-15");
    let period = "month:2024-01";
    let mut wanted = BTreeMap::new();
    for path in [reads(&site, "main", period).await, past.cursors(&site, period).await].concat() {
        let answer = site.get(&path).await.is(200);
        wanted.insert(path, seen(&answer));
    }
    let wanted = Arc::new(wanted);
    let other: Serve = spawn_serve(&db, Some(&redis_url().await), &PATIENT).await;
    let stage = Arc::new(AtomicUsize::new(0));
    let all = [(); 2].map(|()| Arc::new(Counts::default()));
    let mut readers = JoinSet::new();
    for (seed, serve) in [&site.serve, &other, &site.serve, &other].into_iter().enumerate() {
        readers.spawn(read(
            serve.client.clone(),
            serve.url.clone(),
            Arc::clone(&wanted),
            Arc::clone(&stage),
            Arc::clone(&all[seed % 2]),
            seed as u64,
        ));
    }
    enough(&all, |met| &met.open).await;
    past.close(period).await;
    // Deletes the old ranking at once, step by step, while readers may still use it.
    loop {
        let removed: i64 =
            query_scalar("SELECT centile_store.remove_released(20)").fetch_one(&past.pool).await.unwrap();
        if removed == 0 {
            break;
        }
    }
    enough(&all, |met| &met.closed).await;
    for _ in 0..amount(2, 5) {
        past.refresh(period).await;
        enough(&all, |met| &met.closed).await;
    }
    stage.store(1, Ordering::SeqCst);
    past.release_archive(period, false).await;
    past.release_archive(period, true).await;
    enough(&all, |met| &met.gone).await;
    stage.store(2, Ordering::SeqCst);
    readers.join_all().await;
    for met in &all {
        let wrong = met.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} are wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    }
}

/// A reader's statement has begun when its archive is dropped. The reader must look up the period
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_dropped_under_a_reader_is_not_found() {
    let db = TestDb::new().await;
    let site = Arc::new(Site::start(&db, &[]).await);
    let past = Past::new(&db, "main", json!({}), &site).await;
    past.play(1, 20, 60, "2024-01-15");
    let period = "month:2024-01";
    let paths = reads(&site, "main", period).await;
    past.close(period).await;
    let chosen: Vec<String> = [
        "distribution?",
        "scores?from=3&",
        "scores/p1?around=0",
        "scores/p1?around=2",
        "scores/query?user_id=",
        "rank?score=",
    ]
    .iter()
    .map(|kind| paths.iter().find(|path| path.contains(kind)).unwrap().clone())
    .collect();
    let mut archive = past.pool.begin().await.unwrap();
    sqlx::raw_sql(
        "SELECT centile_store.drop_archive(id, false) FROM centile_store.periods WHERE state = 'closed';
         SELECT centile_store.drop_archive(id, true) FROM centile_store.periods WHERE state = 'closed'",
    )
    .execute(&mut *archive)
    .await
    .unwrap();
    let mut waiting = JoinSet::new();
    for path in chosen.clone() {
        let site = Arc::clone(&site);
        waiting.spawn(async move { (site.get(&path).await, path) });
    }
    let blocked =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let readers = i64::try_from(chosen.len()).unwrap();
    until("all readers wait for the archive", async || {
        query_scalar::<_, i64>(blocked).fetch_one(&past.pool).await.unwrap() >= readers
    })
    .await;
    archive.commit().await.unwrap();
    while let Some(answer) = waiting.join_next().await {
        let (answer, path) = answer.unwrap();
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(answer.text.contains("no longer kept"), "{path}: {answer:?}");
    }
}
