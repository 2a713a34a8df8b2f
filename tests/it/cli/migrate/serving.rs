//! `centile migrate` while instances of another edition serve.

use std::{fs, sync::Arc, time::Duration};

use centile::store::migrate::{Files, LOCK_WAIT, migrate_to};
use tokio_util::sync::CancellationToken;

use super::changed_files;
use crate::support::{
    PATIENT, TestDb, amount, audit,
    load::{Load, key, stop_after},
    redis_url, spawn_serve, verdict,
    wait::{until, within},
};

/// Batches written under each edition.
const BATCHES: i64 = 30;

/// Returns the current schema as another edition: with one more comment.
fn edition(number: u32) -> Files {
    changed_files(|root| {
        let changed = root.join("sql/functions/epoch.sql");
        let text = fs::read_to_string(&changed).unwrap();
        fs::write(&changed, format!("{text}-- Edition {number}.\n")).unwrap();
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "migrates under load: make torture"]
async fn instances_answer_while_functions_and_views_are_replaced() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4, \"first_layout\": {\"bounds\": [-10,0,3,10,30,50]}}');
         SELECT centile.create_board('first', '{\"mode\": \"latest\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 4}')",
    )
    .await;
    let redis = redis_url().await;
    // One instance runs maintenance all the while, the other does not.
    let instances = [
        spawn_serve(&db, Some(&redis), &[&PATIENT[..], &["--maintenance-every", "1"]].concat()).await,
        spawn_serve(&db, Some(&redis), &PATIENT).await,
    ];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    // The load fails on any answer that is a failure of the service.
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (load, stop) = (Arc::clone(&load), stop.clone());
        async move { load.run(&stop).await }
    });
    let pool = db.pool().await;
    let batches = async || -> i64 {
        let batches = "SELECT sum(batch)::bigint FROM centile_store.board_lanes";
        sqlx::query_scalar(batches).fetch_one(&pool).await.expect("the lanes")
    };
    let mut wanted = batches().await + BATCHES;
    for number in 0..amount(3, 8) {
        // A failed load reports its reason below.
        until("batches between two editions", async || running.is_finished() || batches().await >= wanted).await;
        let report = migrate_to(db.url(), &edition(number), LOCK_WAIT).await.expect("another edition");
        assert!(report.objects > 100, "{report:?}");
        wanted = batches().await + BATCHES;
    }
    until("batches under the last edition", async || running.is_finished() || batches().await >= wanted).await;
    stop.cancel();
    record.join(running.await.expect("the load"));
    // Continues until there are answers of every kind.
    within("enough answers", async {
        loop {
            let verdict = verdict::of(&pool, &load, &record).await;
            verdict.expect_right("under changing editions");
            if verdict.answers.values().all(|count| *count >= 10) && verdict.versions > 50 {
                break;
            }
            record.join(load.run(&stop_after(Duration::from_secs(1))).await);
        }
    })
    .await;
    assert!(audit::rankings_are_sound(&pool).await >= 4);
    for instance in instances {
        let output = instance.output();
        for failure in ["ledger could not be maintained", "layouts could not be rebalanced", "a layout could not be"] {
            assert!(!output.contains(failure), "{output}");
        }
    }
}
