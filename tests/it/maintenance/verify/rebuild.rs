//! The result of `rebuild`, its refusals, and its effect on readers.

use serde_json::{Value, json};

use super::*;
use crate::{
    http::api::site::{Answer, Site},
    support::{
        run_at,
        wait::{until, until_some},
    },
};

const REBUILD: &[&str] = &["rebuild", "--board", "arena", "--period", "all_time", "--by", "dora"];

async fn number(pool: &PgPool, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn each_step_is_printed_and_audited() {
    let db = with_past().await;
    let pool = db.pool().await;
    let before = number(&pool, "SELECT ranking_id FROM centile.periods WHERE kind = 'all_time'").await;
    let version = async || -> String {
        let version = "SELECT centile.version_of(ranking_id) FROM centile.periods WHERE kind = 'all_time'";
        sqlx::query_scalar(version).fetch_one(&pool).await.unwrap()
    };
    let version_before = version().await;
    let output = run(&db, &[REBUILD, &["--reason", "to see"]].concat()).well();
    assert_ne!(version().await, version_before, "a rebuild may repair a ranking");
    let after = number(&pool, "SELECT ranking_id FROM centile.periods WHERE kind = 'all_time'").await;
    assert!(output.starts_with("arena all_time: standings of 0 players repaired from the ledger\n"), "{output}");
    assert!(
        output.contains(&format!("rebuilt  arena all_time: ranking {after} replaces {before}, 298 players")),
        "{output}"
    );
    let logged: (String, String, Value, Value) =
        sqlx::query_as("SELECT actor, subject, before, after FROM centile.audit_log WHERE action = 'rebuild'")
            .fetch_one(&pool)
            .await
            .unwrap();
    // The number of players did not change, so the audit log leaves it out.
    assert_eq!(
        logged,
        (
            "dora".to_owned(),
            "all_time".to_owned(),
            json!({"ranking": before}),
            json!({"ranking": after, "reason": "to see"})
        )
    );
    // The next maintenance run deletes the old ranking's rows.
    assert_eq!(number(&pool, "SELECT count(*) FROM centile_store.leaderboard WHERE ranking_id = 1").await, 298);
    run(&db, &["maintain"]).well();
    for left in [
        "SELECT count(*) FROM centile_store.leaderboard WHERE ranking_id NOT IN (SELECT ranking_id FROM centile.periods)",
        "SELECT count(*) FROM centile_store.leaderboard_bucket WHERE ranking_id NOT IN (SELECT ranking_id FROM centile.periods)",
        "SELECT count(*) FROM centile_store.rankings WHERE id NOT IN (SELECT ranking_id FROM centile.periods)",
    ] {
        assert_eq!(number(&pool, left).await, 0, "{left}");
    }
    // All periods at once.
    let output = run(&db, &["rebuild", "--board", "arena", "--all", "--by", "dora"]).well();
    let open = number(&pool, "SELECT count(*) FROM centile.periods WHERE ranking_id IS NOT NULL").await;
    assert_eq!(
        output.lines().filter(|line| line.starts_with("rebuilt ")).count(),
        usize::try_from(open).unwrap(),
        "{output}"
    );
    verify(&db, &[]).well();
}

#[tokio::test]
async fn an_impossible_rebuild_is_refused() {
    let db = with_past().await;
    let pool = db.pool().await;
    let of = |period: &'static str| ["rebuild", "--board", "arena", "--by", "dora", "--period", period];
    run(&db, &of("week:2023-01-02")).refused(1, &["week:2023-01-02 of board", "has no scores"]);
    run(&db, &["close", "--due"]).well();
    run(&db, &of("week:2024-01-01"))
        .refused(1, &["is closed", "centile refresh --board arena --period week:2024-01-01"]);
    run(&db, &["rebuild", "--board", "arena"]).refused(2, &["--period", "--all"]);
    run(&db, &["rebuild", "--board", "arena", "--all", "--period", "week"]).refused(2, &["--all"]);
    // While another rebuild runs.
    let mut other = pool.acquire().await.unwrap();
    let _: i64 = sqlx::query_scalar(
        "SELECT r FROM centile.periods p, centile_store.begin_rebuild(p.period_id) r WHERE p.kind = 'all_time'",
    )
    .fetch_one(&mut *other)
    .await
    .unwrap();
    run(&db, REBUILD).refused(1, &["is rebuilding the period"]);
    // Maintenance leaves a ranking that is being built alone.
    run(&db, &["maintain"]).well();
    assert_eq!(number(&pool, "SELECT count(*) FROM centile_store.rankings WHERE released_at IS NOT NULL").await, 0);
    other.close().await.unwrap();
    // Maintenance removes the unfinished ranking once its builder's session has ended, which may
    // take a moment.
    until("the unfinished ranking is gone", async || {
        run(&db, &["maintain"]).well();
        number(&pool, "SELECT count(*) FROM centile_store.rankings").await == 1
    })
    .await;
    run(&db, REBUILD).well();
    verify(&db, &[]).well();
}

/// Between the moment when maintenance finds an unfinished ranking and the moment when it releases
/// it, the ranking becomes current and its builder's session ends.
#[tokio::test]
async fn maintenance_does_not_release_a_ranking_that_has_just_become_current() {
    let db = with_past().await;
    let pool = db.pool().await;
    let mut builder = pool.begin().await.unwrap();
    sqlx::query("SELECT centile_store.lock_structure(1, true)").execute(&mut *builder).await.unwrap();
    // To other sessions, the rebuild seems to have ended.
    let building: i64 = sqlx::query_scalar(
        "SELECT centile_store.create_ranking(1, period_id) FROM centile.periods WHERE kind = 'all_time'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let upkeep = tokio::spawn({
        let pool = pool.clone();
        async move {
            sqlx::query_scalar::<_, i64>("SELECT centile_store.release_abandoned()").fetch_one(&pool).await.unwrap()
        }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()";
    until("maintenance waits for the lock", async || upkeep.is_finished() || number(&pool, waits).await > 0).await;
    sqlx::query("UPDATE centile_store.periods SET ranking_id = $1 WHERE kind = 'all_time'")
        .bind(building)
        .execute(&mut *builder)
        .await
        .unwrap();
    builder.commit().await.unwrap();
    // It releases the previous ranking.
    assert_eq!(upkeep.await.unwrap(), 1);
    let current: bool = sqlx::query_scalar("SELECT released_at IS NULL FROM centile_store.rankings WHERE id = $1")
        .bind(building)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(current);
}

#[tokio::test]
async fn cursors_and_repeats_survive_a_rebuild() {
    let db = with_past().await;
    let site = Site::start(&db, &[]).await;
    let scores = "/v1/boards/arena/scores";
    let event = json!({"user_id": "p010", "points": 3, "id": "once"}).to_string();
    let ranked = format!("{scores}?ranks=true");
    let first = site.post(&ranked, &event).await.is(200);
    let page = site.get(&format!("{scores}?from=1&limit=100")).await.is(200);
    let top = site.get(&format!("{scores}?limit=10")).await;
    let standing = site.get(&format!("{scores}/p010?around=3")).await.is(200);
    let tag = top.headers["etag"].to_str().unwrap().to_owned();
    let same =
        site.send(reqwest::Method::GET, &format!("{scores}?limit=10"), &[("if-none-match", &tag)], String::new()).await;
    assert_eq!(same.status, 304);

    // Damage that a rebuild repairs.
    let pool = db.pool().await;
    damage(&db, &pool, "UPDATE leaderboard SET score = score + 7 WHERE ranking_id = $r AND user_id = 77").await;
    run_at(db.url(), REBUILD).well();
    run(&db, &["maintain"]).well();

    let rest = site.get(&format!("{scores}?limit=100&cursor={}", page["next_cursor"].as_str().unwrap())).await.is(200);
    let row = &rest["data"][0];
    assert_eq!(row["position"], 101, "{row}");
    let whole = site.get(&format!("{scores}?from=101&limit=100")).await.is(200);
    assert_eq!(rest["data"], whole["data"]);
    let again = site.get(&format!("{scores}/p010?around=3")).await.is(200);
    for same in ["rank", "position", "score", "above", "below", "players"] {
        assert_eq!(again[same], standing[same], "{same}");
    }
    assert_ne!(again["version"], standing["version"]);
    until_another_tag(&site, &format!("{scores}?limit=10"), &tag).await.is(200);
    // Repeats the first answer with ranks read again, although its ranking no longer exists.
    let repeated = site.post(&ranked, &event).await.is(200);
    assert_eq!(repeated["periods"]["all_time"], first["periods"]["all_time"], "{repeated}");
    assert!(repeated["periods"]["all_time"]["rank"].is_u64(), "{repeated}");
}

/// Returns the top list once its tag differs from `tag`: lists may lag by 250 ms.
async fn until_another_tag(site: &Site, path: &str, tag: &str) -> Answer {
    until_some("the tag changes", async || {
        let answer = site.send(reqwest::Method::GET, path, &[("if-none-match", tag)], String::new()).await;
        assert_eq!(answer.status == 304, answer.headers["etag"] == tag, "{answer:?}");
        (answer.status != 304).then_some(answer)
    })
    .await
}

/// A top list read from a damaged ranking and the one after its repair differ in their tags,
/// although no score was written.
#[tokio::test]
async fn a_repaired_top_has_another_etag() {
    let db = with_past().await;
    let pool = db.pool().await;
    damage(&db, &pool, "DELETE FROM leaderboard_bucket WHERE ranking_id = $r AND user_key % 20 = -2").await;
    let site = Site::start(&db, &[]).await;
    let path = "/v1/boards/arena/scores?limit=10";
    let wrong = site.get(path).await;
    assert_eq!(wrong.status, 200);
    run(&db, REBUILD).well();
    let right = until_another_tag(&site, path, wrong.headers["etag"].to_str().unwrap()).await;
    assert_ne!(wrong.body["data"], right.body["data"]);
    let score: i64 = sqlx::query_scalar("SELECT score FROM centile.ranking('arena') WHERE position = 1")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(right.body["data"][0]["score"], score);
}
