//! Periods follow each other without a scheduler and close while others continue, whatever the
//! clock does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{
    TestDb, amount, audit,
    boundary::{SHORT_DAYS, until_over},
    client,
    load::{PATIENT, key},
    random::seed,
    redis_url, run, spawn_serve,
    wait::until_blocking,
};

/// Seasons, in seconds from now: overlapping, one within another, one after all events.
const SEASONS: [(&str, f64, f64); 5] =
    [("a", 0.5, 3.25), ("b", 1.0, 2.0), ("c", 2.0, 2.5), ("d", 2.9, 600.0), ("e", 1_200.0, 1_300.0)];

/// The answer to an event.
#[derive(Debug)]
struct Written {
    user: String,
    points: i64,
    at: DateTime<Utc>,
    scores: BTreeMap<String, i64>,
}

fn written(user: String, points: i64, result: &Value) -> Written {
    let scores = result["periods"].as_object().expect("periods");
    Written {
        user,
        points,
        at: result["occurred_at"].as_str().expect("a time").parse().expect("a time"),
        scores: scores
            .iter()
            .map(|(name, standing)| (name.clone(), standing["score"].as_i64().expect("a score")))
            .collect(),
    }
}

/// A stored period; an open end is far in the future.
#[derive(Debug, sqlx::FromRow)]
struct Stored {
    name: String,
    kind: String,
    starts_at: DateTime<Utc>,
    ends_at: DateTime<Utc>,
    state: String,
    archive_name: Option<String>,
    archive_differences: Option<i64>,
}

async fn stored(pool: &PgPool) -> Vec<Stored> {
    sqlx::query_as(
        "SELECT CASE kind WHEN 'all_time' THEN kind ELSE kind || ':' || label END AS name, kind,
                greatest(starts_at, '2000-01-01Z') AS starts_at, least(ends_at, '2100-01-01Z') AS ends_at,
                state, archive_name, archive_differences
         FROM centile_store.periods ORDER BY starts_at, kind",
    )
    .fetch_all(pool)
    .await
    .expect("periods")
}

/// The writers of one instance use the periods of their last batches again. Those of two instances
/// compete, and read them each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_is_in_the_period_of_its_time_while_periods_close() {
    let seed = seed();
    tokio::join!(cross_periods(seed, 1), cross_periods(seed, 2));
}

async fn cross_periods(seed: u64, instances: usize) {
    let db = TestDb::new().await;
    db.execute(SHORT_DAYS).await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4}')").await;
    let redis = redis_url().await;
    let flags = [PATIENT, &["--maintenance-every", "1"]].concat();
    let instances = join_all((0..instances).map(|_| spawn_serve(&db, Some(&redis), &flags))).await;
    let key = Arc::new(key(db.url(), "server"));
    for (name, from, until) in SEASONS {
        db.execute(&format!(
            "SELECT centile.create_season('arena', '{name}', now() + interval '{from} seconds', now() + interval '{until} seconds')"
        ))
        .await;
    }
    let (stop, mut callers) = (CancellationToken::new(), JoinSet::new());
    for caller in 0..6_u8 {
        let (address, key) =
            (instances[usize::from(caller) % instances.len()].at("/v1/boards/arena/scores"), Arc::clone(&key));
        let stop = stop.clone();
        callers.spawn(async move {
            let (client, mut random) = (client(), StdRng::seed_from_u64(seed.wrapping_add(caller.into())));
            let mut all = Vec::new();
            while !stop.is_cancelled() {
                // Each player has one caller, so that the answers arrive in the order of the
                // events.
                let (user, points) = (format!("{caller}-{}", random.random_range(0..40)), random.random_range(-5..50));
                let event = json!({"user_id": user, "points": points});
                let answer = client.post(&address).bearer_auth(&key).json(&event).send().await.expect("an answer");
                let (status, text) = (answer.status(), answer.text().await.expect("a body"));
                assert_eq!(status, 200, "{text}");
                let body: Value = serde_json::from_str(&text).expect("JSON");
                let result = body.get("results").map_or(&body, |results| &results[0]);
                all.push(written(user, points, result));
            }
            all
        });
    }
    let pool = db.pool().await;
    let [days, weeks, months] = amount([4, 2, 1], [11, 4, 2]);
    until_over(&pool, &[("day", days), ("week", weeks), ("month", months), ("season", 3)]).await;
    stop.cancel();
    let events: Vec<Written> = callers.join_all().await.into_iter().flatten().collect();
    drop(instances);
    // A killed instance that was closing a period holds its lock until the server notices.
    let now = Utc::now();
    until_blocking("the lock for closing is free", || {
        !run(&db, &["close", "--due"]).well().contains("another process")
    });

    let periods = stored(&pool).await;
    // Each answer names exactly the periods that contain its time, and in each the sum of the
    // player's points so far.
    let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for event in &events {
        let holding: BTreeSet<&str> = periods
            .iter()
            .filter(|period| period.starts_at <= event.at && event.at < period.ends_at)
            .map(|period| period.name.as_str())
            .collect();
        assert_eq!(event.scores.keys().map(String::as_str).collect::<BTreeSet<_>>(), holding, "{event:?}");
        for kind in ["all_time", "day", "week", "month"] {
            assert_eq!(holding.iter().filter(|name| name.starts_with(kind)).count(), 1, "{kind}: {event:?}");
        }
        for (name, score) in &event.scores {
            let sum = sums.entry((name.as_str(), event.user.as_str())).or_default();
            *sum += event.points;
            assert_eq!(score, sum, "{name}: {event:?}");
        }
    }
    // Each archive equals the ranking computed from the answers that name its period.
    let mut closed: BTreeMap<&str, i64> = BTreeMap::new();
    for period in periods.iter().filter(|period| period.state == "closed") {
        assert_eq!(period.archive_differences, Some(0), "{period:?}");
        let statement = format!(
            "SELECT u.external_id, a.score, a.rank FROM centile_archive.{} a JOIN centile_store.users u ON u.id = a.user_id ORDER BY a.position",
            period.archive_name.as_deref().expect("an archive")
        );
        let rows: Vec<(String, i64, i64)> =
            sqlx::query_as(AssertSqlSafe(statement)).fetch_all(&pool).await.expect("an archive");
        let wanted: BTreeMap<&str, i64> = sums
            .iter()
            .filter(|((name, _), _)| *name == period.name)
            .map(|((_, user), score)| (*user, *score))
            .collect();
        assert_eq!(rows.len(), wanted.len(), "{period:?}");
        for (user, score, rank) in &rows {
            let better = wanted.values().filter(|other| *other > score).count();
            assert_eq!(
                (wanted[user.as_str()], *rank),
                (*score, i64::try_from(better).expect("a count") + 1),
                "{user} in {period:?}"
            );
        }
        *closed.entry(period.kind.as_str()).or_default() += 1;
    }
    assert!(
        closed["day"] >= days && closed["week"] >= weeks && closed["month"] >= months && closed["season"] == 3,
        "{closed:?}"
    );
    assert!(periods.iter().filter(|period| period.ends_at < now).all(|period| period.state == "closed"));
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions")
        .fetch_one(&pool)
        .await
        .expect("a count");
    assert_eq!(usize::try_from(stored), Ok(events.len()));
    audit::rankings_are_sound(&pool).await;
}

/// A clock that the test sets. It replaces the database's clock in every function that reads the
/// time.
const FAKE_CLOCK: &str = "
    CREATE SCHEMA fake;
    CREATE TABLE fake.clock (at timestamptz);
    INSERT INTO fake.clock VALUES (now());
    CREATE FUNCTION fake.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM fake.clock';
    DO $$
    DECLARE
        v_function text;
    BEGIN
        FOR v_function IN
            SELECT regexp_replace(pg_get_functiondef(p.oid), '(clock|statement)_timestamp\\(\\)', 'fake.now()', 'g')
            FROM pg_proc p
            WHERE p.pronamespace IN ('centile'::regnamespace, 'centile_store'::regnamespace)
              AND p.prosrc ~ '(clock|statement)_timestamp\\(\\)' LOOP
            EXECUTE v_function;
        END LOOP;
    END
    $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lane_goes_back_after_a_close_whatever_the_clock_does() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('arena', '{\"lanes\": 4, \"periods\": [\"all_time\", \"week\"]}')").await;
    db.execute(FAKE_CLOCK).await;
    let pool = db.pool().await;
    let boundary: DateTime<Utc> =
        sqlx::query_scalar("SELECT ends_at FROM centile.period_at('week', now() + interval '7 days', 'UTC')")
            .fetch_one(&pool)
            .await
            .expect("a boundary");
    let set_clock = async |minutes: i64| {
        let at = boundary + chrono::Duration::minutes(minutes);
        sqlx::query("UPDATE fake.clock SET at = $1").bind(at).execute(&pool).await.expect("a clock that can be set");
    };
    let serve = spawn_serve(&db, None, &[]).await;
    let key = key(db.url(), "server");
    // One player for each lane.
    let players: Vec<String> = sqlx::query_scalar(
        "SELECT min('p' || n) FROM generate_series(1, 100) n GROUP BY centile.lane_hash('p' || n) % 4 ORDER BY centile.lane_hash(min('p' || n)) % 4",
    )
    .fetch_all(&pool)
    .await
    .expect("players");
    assert_eq!(players.len(), 4);
    let submit = async |user: &str| {
        let event = json!({"user_id": user, "points": 10});
        let address = serve.at("/v1/boards/arena/scores");
        let answer = serve.client.post(address).bearer_auth(&key).json(&event).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let body: Value = serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
        written(user.to_owned(), 10, body.get("results").map_or(&body, |results| &results[0]))
    };
    let next_week = format!("week:{}", boundary.date_naive());

    // Sunday, 23:00: three lanes write, the fourth is idle.
    set_clock(-60).await;
    for player in &players[..3] {
        let event = submit(player).await;
        assert_eq!(event.at, boundary - chrono::Duration::hours(1));
        assert!(!event.scores.contains_key(&next_week), "{event:?}");
    }
    // Forward and back before the week closes: no event has passed the boundary, so the week
    // continues.
    set_clock(-30).await;
    assert_eq!(submit(&players[0]).await.at, boundary - chrono::Duration::minutes(30));
    sqlx::query("UPDATE fake.clock SET at = at - interval '4 seconds'").execute(&pool).await.expect("a clock set back");
    let event = submit(&players[0]).await;
    assert_eq!(event.at, boundary - chrono::Duration::minutes(30), "not before the lane's last event");
    // Further back, the lane refuses scores.
    set_clock(-90).await;
    let event = json!({"user_id": players[0], "points": 10});
    let request = serve.client.post(serve.at("/v1/boards/arena/scores")).bearer_auth(&key).json(&event);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 503);
    let problem: Value = serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
    assert_eq!(problem["code"], "clock_behind");

    set_clock(30).await;
    let output = run(&db, &["close", "--due"]).well();
    assert!(output.contains("closed   arena week:") && output.contains("3 players"), "{output}");
    set_clock(-30).await;
    for player in &players {
        let event = submit(player).await;
        assert_eq!(event.at, boundary, "{event:?}");
        assert_eq!(event.scores.get(&next_week), Some(&10), "the new week must begin empty: {event:?}");
    }
    set_clock(31).await;
    assert_eq!(submit(&players[3]).await.scores[&next_week], 20);
    let archived: i64 = sqlx::query_scalar("SELECT archive_players FROM centile_store.periods WHERE state = 'closed'")
        .fetch_one(&pool)
        .await
        .expect("an archive");
    assert_eq!(archived, 3);
    assert_eq!(run(&db, &["close", "--due"]).well(), "nothing is due\n");
}
