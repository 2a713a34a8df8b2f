//! Copies of a single server's database into a cluster. The test needs PostgreSQL with Citus, and
//! starts its own servers, one of which also has the database to copy.

use std::{fs, sync::Arc, time::Duration};

use centile::store::migrate::init_cluster;
use rand::RngExt as _;
use serde_json::json;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::support::{
    audit, cluster, folder,
    load::{Load, key, stop_after},
    record::Record,
    run_at, verdict,
    wait::{until, within},
};

/// Boards with fewer lanes than the cluster.
const BOARDS: &str = "
    SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"first_layout\": {\"bounds\": [-10,0,3,10,30,50]}, \"lanes\": 2}');
    SELECT centile.create_board('first', '{\"mode\": \"latest\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 1}');
    SELECT centile.create_board('window', '{\"periods\": [\"all_time\", \"week\"], \"rolling\": [\"7d\"], \"lanes\": 4}');
    SELECT centile.create_board('segments', '{\"periods\": [\"all_time\", \"week\"], \"segments\": [\"country\"]}')";

/// Every ranking, except those of combined boards: board, period, state, and all of its rows.
const RANKINGS: &str = "
    SELECT p.board, p.period, p.state, (SELECT jsonb_agg(r ORDER BY r.position) FROM centile.ranking(p.board, p.period) r)
    FROM (SELECT p.board, centile_store.period_name(p.kind, p.label, p.segment) AS period, p.state FROM centile.periods p WHERE p.state <> 'preparing' AND p.board NOT IN ('both', 'inner')) p
    ORDER BY 1, 2";

/// The rows of each view, without columns about lanes and ages. Excludes views that differ on a cluster: they
/// show applied batches, layouts, versions, sizes, partitions or combined boards.
const VIEWS: &str = "
    SELECT v.viewname, query_to_xml(format('SELECT to_jsonb(v) - ''{lane,lanes,oldest_due_age,outbox_oldest_age,unapplied_age}''::text[] AS columns FROM centile.%I v ORDER BY 1', v.viewname), true, false, '')::text
    FROM pg_views v WHERE v.schemaname = 'centile' AND v.viewname NOT IN ('apply_lag', 'archive_index', 'bucket_occupancy', 'combinations', 'database_limits', 'ledger_months', 'periods', 'table_health') ORDER BY 1";

type Rankings = Vec<(String, String, String, Option<serde_json::Value>)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Citus: make cluster-test"]
async fn a_database_is_copied_into_a_cluster() {
    let cluster = cluster::start();
    let single = cluster::create_single(&cluster).await;
    let source = PgPool::connect(&single).await.unwrap();
    sqlx::raw_sql(BOARDS).execute(&source).await.unwrap();
    fill_past_weeks(&single);
    let (mut load, mut record) = write_scores(&single).await;

    let url = cluster.create_database("boards").unwrap();
    // Three lanes are no multiple of two.
    run_at(&url, &["cluster", "init", "--lanes", "3", "--groups", "3", "--from", &single])
        .refused(1, &["board", "lanes"]);
    let idle = cluster::serve(&single, "idle").await;
    run_at(&url, &["cluster", "init", "--lanes", "4", "--groups", "4", "--from", &single])
        .refused(1, &["stop all instances"]);
    run_at(&url, &["cluster", "init"]).refused(1, &["interrupted", "--from"]);
    drop(idle);
    let copied = PgPool::connect(&url).await.unwrap();
    let begun = interrupt(&copied, &url, &single).await;
    // Completed steps are valid until the source changes.
    run_at(&single, &["user", "set", "p4", "--name", "Dora"]).well();
    let before: Rankings = sqlx::query_as(RANKINGS).fetch_all(&source).await.unwrap();
    assert!(before.iter().filter(|(_, _, state, _)| state == "closed").count() > 3, "{before:?}");
    let again = interrupt(&copied, &url, &single).await;
    assert!(begun.iter().zip(&again).all(|(begun, again)| begun < again), "{begun:?} {again:?}");
    within("the database is copied", init_cluster(&url, 4, 4, Some(&single))).await.unwrap();
    assert_eq!(again, writers_of_rows(&url).await);
    run_at(&url, &["cluster", "init", "--from", &single]).refused(1, &["has boards or players"]);

    let after: Rankings = sqlx::query_as(RANKINGS).fetch_all(&copied).await.unwrap();
    assert_eq!(before, after);
    let [old, new] = [&source, &copied].map(|pool| sqlx::query_as::<_, (String, String)>(VIEWS).fetch_all(pool));
    let (old, new) = (old.await.unwrap(), new.await.unwrap());
    let has_rows = |view: &str| old.iter().any(|(name, rows)| name == view && rows.contains("<row>"));
    assert!(["daily_points", "score_history", "standings"].into_iter().all(has_rows), "{old:?}");
    assert_eq!(old, new);
    let unlike = run_at(&url, &["verify"]);
    assert_eq!(unlike.code, Some(0), "{unlike:?}");

    // The cluster continues where the server ended: repeated events, bans and ids are known.
    let instance = cluster::serve(&url, "copied").await;
    Arc::get_mut(&mut load).unwrap().instances = vec![instance.url.clone()];
    record.join(load.run(&stop_after(Duration::from_secs(2))).await);
    // The versions of answers contain batches in which some lanes have no rows.
    record.answers.clear();
    verdict::of(&copied, &load, &record).await.expect_right("after the copy");
    assert!(audit::rankings_are_sound(&copied).await > 3);
}

/// Interrupts copies at random moments, and one before the coordinator commits. Returns
/// [`writers_of_rows`].
async fn interrupt(coordinator: &PgPool, url: &str, single: &str) -> Vec<i64> {
    let mut lock = coordinator.begin().await.unwrap();
    // The last statement of the coordinator waits for this.
    sqlx::query("LOCK TABLE centile_lanes.filling IN ACCESS SHARE MODE").execute(&mut *lock).await.unwrap();
    for _ in 0..3 {
        let part = Duration::from_millis(rand::rng().random_range(0..3_000));
        eprintln!("a copy is interrupted after {part:?}");
        let copying = timeout(part, init_cluster(url, 4, 4, Some(single))).await;
        // The last statement fails if it waits long.
        assert!(!matches!(copying, Ok(Ok(()))));
    }
    let (to, from) = (url.to_owned(), single.to_owned());
    let copying = tokio::spawn(async move { init_cluster(&to, 4, 4, Some(&from)).await });
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DROP TABLE centile_lanes.filling%')";
    let is_last = async || sqlx::query_scalar(waits).fetch_one(coordinator).await.unwrap();
    // It may end by a timeout first.
    until("the workers have committed", async || copying.is_finished() || is_last().await).await;
    copying.abort();
    assert!(!matches!(copying.await, Ok(Ok(()))));
    writers_of_rows(url).await
}

/// Returns, for each worker, the id of the latest transaction that wrote users, entries or bucket
/// counts. It stays the same if a run skips these tables.
async fn writers_of_rows(url: &str) -> Vec<i64> {
    let mut found = Vec::new();
    for worker in cluster::workers(url).await {
        let latest = "SELECT max(w::text::bigint) FROM (
            SELECT xmin FROM centile_store.users UNION ALL SELECT xmin FROM centile_store.players UNION ALL SELECT xmin FROM centile_store.bucket_counts) AS t (w)";
        found.push(sqlx::query_scalar(latest).fetch_one(&worker).await.unwrap());
    }
    found
}

/// Imports scores of weeks in 2024, and closes these weeks.
fn fill_past_weeks(url: &str) {
    let events = (0..600).map(|n| {
        let day = 1 + n % 28;
        json!({"user_id": format!("p{}", n % 150), "points": n % 17, "occurred_at": format!("2024-01-{day:02}T12:00:00Z")})
            .to_string()
    });
    for (user, country) in [("p1", "de"), ("p2", "de"), ("p3", "fr")] {
        run_at(url, &["user", "set", user, "--attribute", &format!("country={country}")]).well();
    }
    let folder = folder("events");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("events.ndjson");
    fs::write(&file, events.collect::<Vec<_>>().join("\n")).unwrap();
    for board in ["shared", "first", "window", "segments"] {
        run_at(url, &["import", "--board", board, file.to_str().unwrap()]).well();
    }
    fs::remove_dir_all(&folder).unwrap();
    // A board that is computed from a later one.
    run_at(url, &["board", "combine", "both", "--source", "shared@all_time"]).well();
    run_at(url, &["board", "combine", "inner", "--source", "segments@all_time*2"]).well();
    run_at(
        url,
        &["board", "combine", "both", "--replace", "--source", "shared@all_time", "--source", "inner@all_time"],
    )
    .well();
    run_at(url, &["close", "--due"]).well();
}

/// Writes scores, bans, voids and resets. Returns the load and a record of its changes, without
/// answers: their versions are those of the single server.
async fn write_scores(url: &str) -> (Arc<Load>, Record) {
    let instance = cluster::serve(url, "single").await;
    let load = Arc::new(Load::new(vec![instance.url.clone()], &["shared", "first"], key(url, "admin")));
    let mut record = load.begin().await;
    record.join(load.run(&stop_after(Duration::from_secs(2))).await);
    record.answers.clear();
    (load, record)
}
