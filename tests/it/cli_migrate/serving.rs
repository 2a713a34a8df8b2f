//! `centile migrate` while instances of another edition serve.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use centile::store::migrate::{Files, migrate_to};
use tokio_util::sync::CancellationToken;

use crate::support::{
    TestDb, audit, folder,
    load::{Load, key},
    redis_url, spawn_serve, verdict,
};

/// How often all functions and views are replaced.
const EDITIONS: u32 = 8;
/// How long each edition stays.
const PHASE: Duration = Duration::from_millis(700);

/// The schema of now, as another edition: with one more remark.
fn edition(number: u32) -> Files {
    let root = folder("edition");
    for path in ["migrations", "sql/functions", "sql/views"] {
        fs::create_dir_all(root.join(path)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), root.join(path).join(entry.file_name())).unwrap();
        }
    }
    fs::copy("sql/grants.sql", root.join("sql/grants.sql")).unwrap();
    let changed = root.join("sql/functions/epoch.sql");
    let text = fs::read_to_string(&changed).unwrap();
    fs::write(&changed, format!("{text}-- Edition {number}.\n")).unwrap();
    let files = Files::read(&root).unwrap();
    fs::remove_dir_all(&root).unwrap();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_go_on_answering_while_functions_and_views_are_replaced() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', p_periods => '{all_time,week}', p_lanes => 4::smallint,
             p_layout_bounds => '{-10,0,3,10,30,50}');
         SELECT centile.create_board('first', p_mode => 'latest', p_order => 'asc', p_ties => 'first',
             p_periods => '{all_time,week}', p_lanes => 4::smallint)",
    )
    .await;
    let redis = redis_url().await;
    // One that looks after periods, layouts and counts all the while, and one that does not.
    let instances = [
        spawn_serve(&db, Some(&redis), &["--maintenance-every", "1"]).await,
        spawn_serve(&db, Some(&redis), &[]).await,
    ];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    // It fails at any answer that is a failure of the service.
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let stop = CancellationToken::new();
    let (url, ended) = (db.url().to_owned(), stop.clone());
    let replacing = tokio::spawn(async move {
        let _end = ended.drop_guard();
        for number in 0..EDITIONS {
            tokio::time::sleep(PHASE).await;
            let (files, begin) = (edition(number), Instant::now());
            let report = migrate_to(&url, &files).await.expect("another edition");
            assert!(report.objects > 100, "{report:?}");
            eprintln!("edition {number} after {:?}", begin.elapsed());
        }
        tokio::time::sleep(PHASE).await;
    });
    record.join(load.run(&stop).await);
    replacing.await.expect("editions");
    let pool = db.pool().await;
    let verdict = verdict::of(&pool, &load, &record).await;
    verdict.expect_right("under changing editions");
    assert!(verdict.answers.values().all(|count| *count >= 10) && verdict.versions > 50);
    assert_eq!(audit::rankings_are_sound(&pool).await, 4);
    for instance in instances {
        let output = instance.output();
        assert!(!output.contains("could not be looked after"), "{output}");
    }
}
