//! Concurrent writers and readers: every answer is exact for its version, and includes everything
//! acknowledged before its request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Serve, TestDb, amount, audit, is_cluster,
    layout::{self, Step},
    load::{Load, PATIENT, key, parsed, stop_after},
    random::seeded,
    record::Record,
    redis_url, run_at, spawn_serve, verdict,
    wait::{until, within},
};

/// Duration of one part of a load. Parts follow until the load has covered enough.
const PART: Duration = Duration::from_secs(1);

/// Compares all answers of a load with the ledger, and audits the rankings. Returns whether the
/// load has covered enough: every kind of question, repeated events, and many versions.
async fn examine(db: &TestDb, load: &Load, record: &Record, what: &str) -> bool {
    if record.answers.len() < amount(600, 20_000) {
        return false;
    }
    let pool = db.pool().await;
    let verdict = verdict::of(&pool, load, record).await;
    verdict.expect_right(what);
    assert!(audit::rankings_are_sound(&pool).await >= 2 * load.boards.len());
    verdict.answers.len() == 9
        && verdict.answers.values().all(|count| *count >= amount(5, 10))
        && verdict.versions > amount(50, 100)
        && verdict.repeated > 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_exact_with_two_instances_and_four_lanes() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4, \"first_layout\": {\"bounds\": [-10,0,3,10,30,50]}}');
         SELECT centile.create_board('first', '{\"mode\": \"latest\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 4}')",
    )
    .await;
    let redis = redis_url().await;
    let instances: [Serve; 2] =
        [spawn_serve(&db, Some(&redis), PATIENT).await, spawn_serve(&db, Some(&redis), PATIENT).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    load.run_until(PART, async |record| examine(&db, &load, record, "two instances, four lanes").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_exact_on_boards_of_templates() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.set_template('shared', 'shared*', '{\"mode\": \"best\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
         SELECT centile.set_template('first', 'first*', '{\"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 1}')",
    )
    .await;
    let redis = redis_url().await;
    let instances: [Serve; 2] =
        [spawn_serve(&db, Some(&redis), PATIENT).await, spawn_serve(&db, Some(&redis), PATIENT).await];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    load.run_until(PART, async |record| examine(&db, &load, record, "boards of templates").await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_exact_with_one_instance_and_one_lane() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"mode\": \"best\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 1}');
         SELECT centile.create_board('first', '{\"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 1, \"first_layout\": {\"bounds\": [5,20]}}')",
    )
    .await;
    let instance = spawn_serve(&db, None, PATIENT).await;
    let load = Arc::new(Load::new(vec![instance.url.clone()], &["shared", "first"], key(db.url(), "admin")));
    load.run_until(PART, async |record| examine(&db, &load, record, "one instance, one lane").await).await;
}

/// Counts of the layout changes so far.
#[derive(Default)]
struct Done {
    moved: AtomicI64,
    repositioned: AtomicI64,
    rebuilt: AtomicI64,
}

impl Done {
    /// Returns the numbers of moved boundaries, repositioned buckets and rebuilt rankings.
    fn counts(&self) -> [i64; 3] {
        [&self.moved, &self.repositioned, &self.rebuilt].map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns whether the load has probably met changes of each kind.
    fn is_enough(&self) -> bool {
        let [moved, repositioned, rebuilt] = self.counts();
        (is_cluster() || moved > 20 && repositioned > 20) && rebuilt > amount(6, 20)
    }
}

/// Changes the layout of random rankings, one short step after the other. On a cluster, only rebuilds
/// change layouts.
async fn change_layouts(pool: PgPool, stop: CancellationToken, done: Arc<Done>) {
    let mut random = seeded();
    let mut connection = pool.acquire().await.expect("a connection");
    while !stop.is_cancelled() && !is_cluster() {
        let ranking: i64 = sqlx::query_scalar("SELECT ranking_id FROM centile.periods ORDER BY random() LIMIT 1")
            .fetch_one(&mut *connection)
            .await
            .expect("a ranking");
        // The ranking may have been replaced and removed since.
        let occupied: Option<(i32, Option<Vec<i64>>)> =
            sqlx::query_as("SELECT layout, centile_store.bucket_totals(id) FROM centile_store.rankings WHERE id = $1")
                .bind(ranking)
                .fetch_optional(&mut *connection)
                .await
                .expect("the layout");
        let Some((number, Some(players))) = occupied else { continue };
        let Some(change) = layout::random_step(&mut random, &players) else { continue };
        if layout::take(&mut connection, ranking, number, change).await.expect("a step").is_some() {
            let count = if let Step::Move { .. } = change { &done.moved } else { &done.repositioned };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Rebuilds all periods of these boards over and over.
async fn rebuild(url: String, boards: &'static [&'static str], stop: CancellationToken, done: Arc<Done>) {
    for board in boards.iter().cycle() {
        if stop.is_cancelled() {
            return;
        }
        let url = url.clone();
        let run = move || run_at(&url, &["rebuild", "--board", board, "--all", "--by", "a test"]).well();
        let output = tokio::task::spawn_blocking(run).await.expect("a rebuild");
        let rebuilt = output.lines().filter(|line| line.starts_with("rebuilt ")).count();
        done.rebuilt.fetch_add(i64::try_from(rebuilt).expect("a small number"), Ordering::Relaxed);
    }
}

/// Layouts change and rankings are replaced all the time. Ranks stay exact, and readers of a
/// replaced ranking move to the current one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_exact_under_layout_changes_and_rebuilds() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('shared', '{\"periods\": [\"all_time\", \"week\"], \"lanes\": 4}');
         SELECT centile.create_board('first', '{\"mode\": \"best\", \"order\": \"asc\", \"ties\": \"first\", \"periods\": [\"all_time\", \"week\"], \"lanes\": 2}')",
    )
    .await;
    let redis = redis_url().await;
    // One instance runs maintenance, so that replaced rankings are also deleted while they are
    // read.
    let instances: [Serve; 2] = [
        spawn_serve(&db, Some(&redis), &[PATIENT, &["--maintenance-every", "1"]].concat()).await,
        spawn_serve(&db, Some(&redis), PATIENT).await,
    ];
    let urls = instances.iter().map(|instance| instance.url.clone()).collect();
    let load = Arc::new(Load::new(urls, &["shared", "first"], key(db.url(), "admin")));
    let mut record = load.begin().await;
    let (stop, done) = (CancellationToken::new(), Arc::new(Done::default()));
    let keeping = tokio::spawn(change_layouts(db.pool().await, stop.clone(), Arc::clone(&done)));
    let rebuilders: &[&[&str]] = amount(&[&["shared", "first"]], &[&["shared"], &["first"]]);
    let rebuilding: Vec<_> = rebuilders
        .iter()
        .map(|boards| tokio::spawn(rebuild(db.url().to_owned(), boards, stop.clone(), Arc::clone(&done))))
        .collect();
    let running = async {
        while !done.is_enough() || record.answers.len() < amount(600, 20_000) {
            record.join(load.run(&stop_after(PART)).await);
        }
    };
    within("layouts change and rankings are rebuilt under load", running).await;
    stop.cancel();
    keeping.await.expect("layouts change");
    for rebuilder in rebuilding {
        rebuilder.await.expect("boards are rebuilt");
    }
    let [moved, repositioned, rebuilt] = done.counts();
    let output = format!("{moved} boundaries moved, {repositioned} buckets repositioned, {rebuilt} rankings rebuilt");
    eprintln!("{output}");
    assert!(examine(&db, &load, &record, "layouts kept, rankings rebuilt").await, "too few kinds of answers");
    run_at(db.url(), &["verify"]).well();
}

/// A board's writers use the warm connections first. While they wait for a lock, other boards'
/// writers still get a connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_board_does_not_block_others() {
    const LANES: i64 = 4;
    const WAITING: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()";
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('held', '{\"lanes\": 4}');
         SELECT centile.create_board('free', '{\"lanes\": 1}')",
    )
    .await;
    let serve = Arc::new(spawn_serve(&db, None, PATIENT).await);
    let key = Arc::new(key(db.url(), "admin"));
    let post = |board: &'static str, player: usize| {
        let (serve, key) = (Arc::clone(&serve), Arc::clone(&key));
        async move {
            let event = json!({ "user_id": format!("player-{player}"), "points": 1 });
            let request = serve.client.post(serve.at(&format!("/v1/boards/{board}/scores"))).bearer_auth(key.as_str());
            request.json(&event).send().await.expect("an answer").status()
        }
    };
    // Opens the periods and creates the players.
    for board in ["held", "free"] {
        assert_eq!(post(board, 0).await, 200);
    }
    let pool = db.pool().await;
    let mut holder = pool.begin().await.expect("a transaction");
    sqlx::query("SELECT pg_advisory_xact_lock(1128615508, id) FROM centile_store.boards WHERE slug = 'held'")
        .execute(&mut *holder)
        .await
        .expect("the structure lock");
    let held: Vec<_> = (0..50).map(|player| tokio::spawn(post("held", player))).collect();
    let all_wait = async || sqlx::query_scalar::<_, i64>(WAITING).fetch_one(&pool).await.expect("a count") >= LANES;
    until("a writer of each lane waits", all_wait).await;
    assert_eq!(post("free", 0).await, 200);
    holder.rollback().await.expect("the end of the transaction");
    for answer in held {
        assert_eq!(answer.await.expect("an answer"), 200);
    }
}

/// Clients repeat a score after a lost answer. Repeated concurrently on both instances, it counts
/// once, and all callers get the same answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_a_hundred_callers_send_at_once_is_applied_once() {
    const CALLERS: usize = 100;
    const ROUNDS: i64 = 3;
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let redis = redis_url().await;
    let instances: [Serve; 2] =
        [spawn_serve(&db, Some(&redis), PATIENT).await, spawn_serve(&db, Some(&redis), PATIENT).await];
    let key = key(db.url(), "server");
    for round in 0..ROUNDS {
        let event = json!({"user_id": "ada", "points": 7, "id": format!("match {round}"), "reason": "won"});
        // Alone and in lists with other events: the answer about this event is the same.
        let answers = join_all((0..CALLERS).map(|caller| {
            let serve = &instances[caller % 2];
            let (event, in_list) = (event.clone(), caller % 3 == 0);
            let other = json!({"user_id": format!("p{caller}"), "points": 1});
            let (path, body) = if in_list { ("/batch", json!({"events": [event, other]})) } else { ("", event) };
            let request = serve.client.post(serve.at(&format!("/v1/boards/arena/scores{path}"))).bearer_auth(&key);
            async move {
                let response = request.json(&body).send().await.expect("an answer");
                assert_eq!(response.status(), 200);
                let mut answer = parsed(&response.text().await.expect("a body"));
                if in_list { answer["results"][0].take() } else { answer }
            }
        }))
        .await;
        let firsts = answers.iter().filter(|answer| answer["repeated"] == false).count();
        assert_eq!(firsts, 1, "of {CALLERS} callers this many got the first answer");
        let same = |mut answer: Value| {
            answer["repeated"] = Value::Null;
            answer
        };
        let mut answers = answers.into_iter().map(same);
        let first = answers.next().expect("an answer");
        assert_eq!(
            (&first["state"], first["periods"]["all_time"]["score"].as_i64()),
            (&json!("accepted"), Some(7 * (round + 1)))
        );
        answers.for_each(|answer| assert_eq!(answer, first));
    }
    let pool = db.pool().await;
    let (rows, points): (i64, i64) = sqlx::query_as(
        "SELECT count(*), sum(points)::bigint FROM centile.score_history WHERE user_id = 'ada' AND kind = 'score'",
    )
    .fetch_one(&pool)
    .await
    .expect("the ledger");
    assert_eq!((rows, points), (ROUNDS, 7 * ROUNDS));
    assert!(audit::rankings_are_sound(&pool).await >= 4);
}
