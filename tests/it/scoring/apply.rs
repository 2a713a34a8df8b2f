//! Bucket rows and counts follow the log of batches. Ranks by SQL belong to the applied batches, however
//! many later ones there are.

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use reqwest::Method;
use serde_json::json;
use sqlx::{Connection as _, PgConnection, PgPool, Row as _, error::DatabaseError};

use crate::{
    http::api::site::Site,
    store::property::{Reproducible, seeds},
    support::{
        TestDb, audit,
        wait::{until, until_some},
    },
};

/// The players, by lane. Some lanes have more than others.
async fn players(connection: &mut PgConnection) -> Vec<(i16, String)> {
    sqlx::query("SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, 24) AS n))")
        .execute(&mut *connection)
        .await
        .unwrap();
    sqlx::query_as("SELECT (centile.lane_hash('p' || n) % 2)::smallint, 'p' || n FROM generate_series(1, 24) AS n")
        .fetch_all(connection)
        .await
        .unwrap()
}

/// Ranks, positions and scores as the ledger gives them at the applied batches. A player's lane is
/// that of the rows.
const ORACLE: &str = "
    WITH applied AS (
        SELECT n AS lane, coalesce((SELECT max(a.batch) FROM centile_store.applied a WHERE a.board_id = 1 AND a.lane = n), 0) AS batch
        FROM generate_series(0, 1) AS n
    ), act AS (
        SELECT t.* FROM centile_store.score_transactions t JOIN applied a USING (lane) WHERE t.batch <= a.batch
    ), sum AS (
        SELECT t.user_id, sum(t.points)::bigint AS score, max(t.occurred_at) AS reached_at
        FROM act t
        WHERE t.kind = 'score'
          AND NOT coalesce((SELECT b.kind = 'ban' FROM act b WHERE b.user_id = t.user_id AND b.kind IN ('ban', 'unban') ORDER BY b.id DESC LIMIT 1), false)
        GROUP BY t.user_id
    )
    SELECT u.external_id, row_number() OVER (ORDER BY s.score DESC, s.reached_at, s.user_id), rank() OVER (ORDER BY s.score DESC), s.score
    FROM sum s JOIN centile_store.users u ON u.id = s.user_id
    ORDER BY 2";

type Place = (String, i64, i64, i64);

#[tokio::test]
async fn ranks_by_sql_belong_to_the_applied_batches() {
    let (mut unequal, mut ranks) = (0, 0);
    for seed in seeds(4) {
        let case = Reproducible(seed);
        let mut random = StdRng::seed_from_u64(case.0);
        let db = TestDb::new().await;
        db.execute("SELECT centile.create_board('main', '{\"lanes\": 2, \"periods\": [\"all_time\"]}')").await;
        let pool = db.pool().await;
        let mut connection = PgConnection::connect(db.url()).await.unwrap();
        let players = players(&mut connection).await;
        for _ in 0..12 {
            for _ in 0..random.random_range(1..5) {
                act(&mut connection, &mut random, &players).await;
            }
            apply_some(&mut connection, &mut random).await;
            let expected: Vec<Place> = sqlx::query_as(ORACLE).fetch_all(&pool).await.unwrap();
            let page = "SELECT user_id, position, rank, score FROM centile.page('main', 'all_time', 1, 100)";
            let found: Vec<Place> = sqlx::query_as(page).fetch_all(&pool).await.unwrap();
            assert_eq!(found, expected);
            for place in &expected {
                let around =
                    "SELECT user_id, position, rank, score FROM centile.players_around('main', $1, 'all_time', 1)";
                let rows: Vec<Place> = sqlx::query_as(around).bind(&place.0).fetch_all(&pool).await.unwrap();
                assert!(rows.contains(place) && rows.iter().all(|row| expected.contains(row)), "{rows:?} {place:?}");
                ranks += 1;
            }
            let behind: i64 = sqlx::query_scalar("SELECT sum(batches_behind)::bigint FROM centile.apply_lag")
                .fetch_one(&pool)
                .await
                .unwrap();
            unequal += i32::from(behind > 0);
            let agree: bool = sqlx::query_scalar("SELECT coalesce(bool_and(agree), true) FROM centile.ranking_counts")
                .fetch_one(&pool)
                .await
                .unwrap();
            assert!(agree, "counts and rows");
            let wrong = "SELECT count(*) FROM centile.periods p CROSS JOIN LATERAL centile_store.ranking_differences(p.ranking_id, 10)";
            let wrong: i64 = sqlx::query_scalar(wrong).fetch_one(&pool).await.unwrap();
            assert_eq!(wrong, 0, "differences");
        }
        assert!(audit::rankings_are_sound(&pool).await > 0);
    }
    assert!(unequal > 10 && ranks > 100, "{unequal} states with batches to apply, {ranks} ranks");
}

/// Writes a few scores, or bans or unbans a player.
async fn act(connection: &mut PgConnection, random: &mut StdRng, players: &[(i16, String)]) {
    let (lane, player) = &players[random.random_range(0..players.len())];
    if random.random_range(0..8) == 0 {
        let act = "SELECT centile_store.ban_player('main', id, $2, NULL, 'test') FROM centile_store.users WHERE external_id = $1";
        sqlx::query(act).bind(player).bind(random.random::<bool>()).execute(connection).await.unwrap();
        return;
    }
    let banned = "SELECT u.external_id FROM centile_store.players b JOIN centile_store.users u ON u.id = b.user_id WHERE b.banned";
    let banned: Vec<String> = sqlx::query_scalar(banned).fetch_all(&mut *connection).await.unwrap();
    let mut users: Vec<&String> =
        players.iter().filter(|(other, name)| other == lane && !banned.contains(name)).map(|(_, name)| name).collect();
    users.retain(|_| random.random_range(0..3) == 0);
    let points: Vec<i64> = users.iter().map(|_| random.random_range(1..4)).collect();
    if !users.is_empty() {
        sqlx::query("SELECT testing.record_scores(1, $1, $2, $3) FROM (SELECT set_config('testing.defers', 'on', false) OFFSET 0) s")
            .bind(lane)
            .bind(users)
            .bind(points)
            .execute(connection)
            .await
            .unwrap();
    }
}

/// Applies some batches of one lane, in steps of few changes, or none.
async fn apply_some(connection: &mut PgConnection, random: &mut StdRng) {
    let lane = random.random_range(0..2_i16);
    let row = sqlx::query(
        "SELECT (centile_store.applied_batches(1, 2))[$1 + 1], coalesce(centile_store.last_logged(1, $1), 0)",
    )
    .bind(lane)
    .fetch_one(&mut *connection)
    .await
    .unwrap();
    let (applied, newest): (i64, i64) = (row.get(0), row.get(1));
    let until = random.random_range(applied..=newest);
    if until > applied {
        sqlx::query("SELECT centile_store.apply_lane(1, $1, $2, $3, $4)")
            .bind(lane)
            .bind(applied)
            .bind(until)
            .bind(random.random_range(1..20))
            .execute(connection)
            .await
            .unwrap();
    }
}

/// Returns which of the rankings are damaged, by kind of period.
async fn damaged(pool: &PgPool) -> Vec<(String, bool)> {
    sqlx::query_as(
        "SELECT p.kind, g.damaged_at IS NOT NULL FROM centile.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id ORDER BY p.kind",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_missing_bucket_row_stops_only_its_ranking() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"periods\": [\"all_time\", \"week\"]}'); SELECT testing.submit_score('main', 'ann', 5)").await;
    let pool = db.pool().await;
    audit::apply(&pool).await;
    db.execute("DELETE FROM centile_store.leaderboard_bucket b USING centile.periods p WHERE p.ranking_id = b.ranking_id AND p.kind = 'week'").await;
    db.execute("SET testing.defers = 'on'; SELECT testing.submit_score('main', 'ann', 1), testing.submit_score('main', 'bob', 9)").await;
    audit::apply(&pool).await;
    assert_eq!(damaged(&pool).await, [("all_time".to_owned(), false), ("week".to_owned(), true)]);
    let score = "SELECT score FROM centile.players_around('main', 'ann', $1, 0)";
    let score = async |period| sqlx::query_scalar::<_, i64>(score).bind(period).fetch_one(&pool).await;
    assert_eq!(score("all_time").await.unwrap(), 6);
    let refused = score("week").await.unwrap_err();
    assert_eq!(refused.as_database_error().and_then(DatabaseError::code).as_deref(), Some("CB900"), "{refused}");
    // The next batches leave it out.
    db.execute("SET testing.defers = 'on'; SELECT testing.submit_score('main', 'bob', 1)").await;
    audit::apply(&pool).await;
    assert_eq!(score("all_time").await.unwrap(), 6);
}

/// The ledger has the score for which the layout had no bucket.
#[tokio::test]
async fn maintenance_rebuilds_a_damaged_ranking() {
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--maintenance-every", "1"]).await;
    site.board(json!({"lanes": 1, "periods": ["all_time"]}), &[("ann", 50)]).await;
    let pool = db.pool().await;
    audit::apply(&pool).await;
    let ranking = async || -> i64 {
        sqlx::query_scalar("SELECT ranking_id FROM centile.periods").fetch_one(&pool).await.unwrap()
    };
    let damaged = ranking().await;
    db.execute("UPDATE centile_store.rankings SET low_rank_keys[1] = 40").await;
    site.post("/v1/boards/main/scores", json!({"user_id": "bob", "points": 30})).await.is(200);
    until("the ranking is rebuilt", async || ranking().await != damaged).await;
    assert_eq!(audit::rankings_are_sound(&pool).await, 1);
    let rows: Vec<(String, i64)> = sqlx::query_as("SELECT user_id, rank FROM centile.page('main', 'all_time', 1, 9)")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(rows, [("ann".to_owned(), 1), ("bob".to_owned(), 2)]);
}

#[tokio::test]
async fn a_gap_in_the_log_marks_all_rankings_of_the_board() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"lanes\": 1, \"periods\": [\"all_time\", \"week\"]}')").await;
    db.execute("SELECT centile.create_board('other', '{\"periods\": [\"all_time\"]}'); SELECT testing.submit_score('other', 'ann', 1)").await;
    let pool = db.pool().await;
    for _ in 0..3 {
        db.execute("SET testing.defers = 'on'; SELECT testing.submit_score('main', 'ann', 1)").await;
    }
    db.execute("DELETE FROM centile_store.batch_log WHERE board_id = 1 AND batch = 2").await;
    audit::apply(&pool).await;
    let marked = async || damaged(&pool).await.iter().filter(|(_, is_damaged)| *is_damaged).count();
    assert_eq!(marked().await, 2);
    // The newest batch is missing, too, although no later one shows it.
    db.execute("SET testing.defers = 'on'; SELECT testing.submit_score('other', 'ann', 1); DELETE FROM centile_store.batch_log WHERE board_id = 2").await;
    audit::apply(&pool).await;
    assert_eq!(marked().await, 3);
}

#[tokio::test]
async fn apply_refuses_to_run_in_a_transaction_block() {
    let db = TestDb::new().await;
    db.execute(
        "SET testing.defers = 'on'; SELECT centile.create_board('main'); SELECT testing.submit_score('main', 'ann', 1)",
    )
    .await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let behind = "SELECT coalesce(sum(batches_behind), 0)::bigint FROM centile.apply_lag";
    sqlx::query("BEGIN").execute(&mut connection).await.unwrap();
    let refused = sqlx::raw_sql("CALL centile.apply('main')").execute(&mut connection).await.unwrap_err();
    assert_eq!(refused.as_database_error().and_then(DatabaseError::code).as_deref(), Some("2D000"), "{refused}");
    sqlx::query("ROLLBACK").execute(&mut connection).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(behind).fetch_one(&mut connection).await.unwrap(), 1);
    sqlx::raw_sql("CALL centile.apply('main')").execute(&mut connection).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(behind).fetch_one(&mut connection).await.unwrap(), 0);
}

/// Beyond 30 seconds, only new scores are refused, and reads by SQL do not wait for ever.
#[tokio::test]
async fn scores_are_refused_while_bucket_rows_are_far_behind() {
    const SCORES: &str = "/v1/boards/main/scores";
    let db = TestDb::new().await;
    let site = Site::start(&db, &["--index-memory", "0", "--pool-wait", "300"]).await;
    site.board(json!({"lanes": 1}), &[]).await;
    let score = json!({"user_id": "ann", "points": 1});
    let held = db.hold("SELECT centile_store.lock_buckets(1)").await;
    site.post(SCORES, &score).await.is(200);
    site.post(SCORES, &score).await.is(200);
    let read = site.get(&format!("{SCORES}/ann")).await;
    assert_eq!((read.status, &read.body["code"]), (503, &json!("overloaded")), "{read:?}");
    db.execute("UPDATE centile_store.batch_log SET written_at = now() - interval '31 seconds'").await;
    // A writer reads the age of its oldest batch once a second.
    let refused = until_some("scores are refused", async || {
        let answer = site.post(SCORES, &score).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("overloaded")), "{refused:?}");
    assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    site.admin(Method::POST, "/v1/users/ann/ban", json!({"reason": "test"})).await.is(200);
    drop(held);
    until("scores are accepted", async || {
        site.post(SCORES, json!({"user_id": "bob", "points": 1})).await.status == 200
    })
    .await;
    until("the rank is current", async || site.get(&format!("{SCORES}/bob")).await.status == 200).await;
    assert!(audit::rankings_are_sound(&db.pool().await).await > 0);
}
