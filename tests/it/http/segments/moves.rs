//! Moves of players to the segments of changed attributes.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::query_scalar;

use super::{SCORES, board, page, row, set, shows, shows_on};
use crate::support::{TestDb, audit, run, wait::until};

#[tokio::test]
async fn a_change_of_attributes_moves_the_open_standings() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    let of = async |segment: &str| page(&site, "main", &format!("period=week&segment={segment}")).await;
    set(&site, "ada", json!({"country": "FR", "class": null})).await.is(200);
    assert_eq!(of("country:DE").await, [row(1, 1, "bob", 5)]);
    assert_eq!(of("country:FR").await, [row(1, 1, "cyd", 6), row(2, 2, "ada", 5)]);
    assert_eq!(of("class:mage").await, [row(1, 1, "cyd", 6)]);
    // A move to a segment that had no ranking. Later scores count there.
    set(&site, "ada", json!({"country": "US"})).await.is(200);
    site.post(SCORES, json!({"user_id": "ada", "points": 3})).await.is(200);
    assert_eq!(of("country:US").await, [row(1, 1, "ada", 8)]);
    assert_eq!(of("country:FR").await, [row(1, 1, "cyd", 6)]);
    // A player who scored before having attributes.
    set(&site, "eve", json!({"country": "US"})).await.is(200);
    assert_eq!(of("country:US").await, [row(1, 1, "eve", 9), row(2, 2, "ada", 8)]);
    // A move back. Setting the same value again changes nothing.
    for _ in 0..2 {
        set(&site, "ada", json!({"country": "DE"})).await.is(200);
        assert_eq!(of("country:DE").await, [row(1, 1, "ada", 8), row(2, 2, "bob", 5)]);
        assert_eq!(of("country:US").await, [row(1, 1, "eve", 9)]);
    }
    // A player without scores moves nothing.
    set(&site, "zoe", json!({"country": "DE"})).await.is(201);
    set(&site, "zoe", json!({"country": "FR"})).await.is(200);
    site.post(SCORES, json!({"user_id": "zoe", "points": 1})).await.is(200);
    assert_eq!(of("country:FR").await, [row(1, 1, "cyd", 6), row(2, 2, "zoe", 1)]);
    let pool = db.pool().await;
    let pending = "SELECT count(*) FROM centile_store.attribute_moves";
    assert_eq!(query_scalar::<_, i64>(pending).fetch_one(&pool).await.ok(), Some(0));

    // Bans: the banned player has no entry anywhere, and returns to the present segment.
    site.admin(Method::POST, "/v1/users/ada/ban", Value::Null).await.is(200);
    assert_eq!(of("country:DE").await, [row(1, 1, "bob", 5)]);
    set(&site, "ada", json!({"country": "new"})).await.is(200);
    assert_eq!(of("country:new").await, []);
    site.admin(Method::POST, "/v1/users/ada/unban", Value::Null).await.is(200);
    assert_eq!(of("country:DE").await, [row(1, 1, "bob", 5)]);
    assert_eq!(of("country:new").await, [row(1, 1, "ada", 8)]);
    // Voids and resets.
    let scored = site.post(SCORES, json!({"user_id": "ada", "points": 10})).await.is(200);
    assert_eq!(of("country:new").await, [row(1, 1, "ada", 18)]);
    let void = format!("/v1/boards/main/transactions/{}/void", scored["transaction_id"]);
    site.admin(Method::POST, &void, json!({})).await;
    assert_eq!(of("country:new").await, [row(1, 1, "ada", 8)]);
    site.admin(Method::POST, &format!("{SCORES}/ada/reset"), Value::Null).await;
    assert_eq!(of("country:new").await, []);
    // Erasure removes the attributes, and the player from the open segments.
    let erased = site.admin(Method::DELETE, "/v1/users/cyd", Value::Null).await.is(200);
    assert_eq!(of("country:FR").await, [row(1, 1, "zoe", 1)]);
    let id = erased["new_user_id"].as_str().unwrap();
    let profile = site.json(Method::GET, &format!("/v1/users/{id}"), &site.server_key, String::new()).await.is(200);
    assert_eq!(profile["attributes"], json!({}));
    assert_eq!(page(&site, "main", "period=week").await[1].3, 6);
    run(&db, &["verify"]).well();
    audit::rankings_are_sound(&pool).await;
}

/// An instance may stop after it has stored the profile and before it has moved the player.
#[tokio::test]
async fn maintenance_finishes_an_interrupted_move() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    db.execute("SELECT centile.put_user('ada', p_attributes => '{\"country\": \"FR\"}')").await;
    assert_eq!(page(&site, "main", "segment=country:DE").await.len(), 2);
    // A score does not move a player whom the board knows; maintenance does.
    site.post(SCORES, json!({"user_id": "ada", "points": 1})).await.is(200);
    assert_eq!(page(&site, "main", "segment=country:DE").await[0], row(1, 1, "ada", 6));
    run(&db, &["maintain"]).well();
    shows(&site, "country:DE", &[row(1, 1, "bob", 5)]).await;
    shows(&site, "country:FR", &[row(1, 1, "cyd", 6), row(2, 1, "ada", 6)]).await;
    let pending = "SELECT count(*) FROM centile_store.attribute_moves";
    assert_eq!(query_scalar::<_, i64>(pending).fetch_one(&db.pool().await).await.ok(), Some(0));
    run(&db, &["verify"]).well();
    // A later change replaces one that is not finished. A number is never used again, so a slow
    // instance cannot end a change that it has not seen.
    let pool = db.pool().await;
    let mut numbers = Vec::new();
    for (country, ends) in [("FR", false), ("US", true), ("FR", true), ("US", false)] {
        db.execute(&format!("SELECT centile.put_user('bob', p_attributes => '{{\"country\": \"{country}\"}}')")).await;
        let number = "SELECT number FROM centile_store.attribute_moves";
        let number: i64 = query_scalar(number).fetch_one(&pool).await.unwrap();
        assert!(numbers.iter().all(|earlier| *earlier < number), "{number} after {numbers:?}");
        numbers.push(number);
        if ends {
            db.execute("DELETE FROM centile_store.attribute_moves").await;
        }
    }
    set(&site, "bob", json!({"class": "mage"})).await.is(200);
    shows(&site, "country:US", &[row(1, 1, "bob", 5)]).await;
}

/// The next batch would have the number of this move.
#[tokio::test]
async fn verify_finds_a_lane_behind_a_move() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    set(&site, "ada", json!({"country": "FR"})).await.is(200);
    run(&db, &["verify"]).well();
    let lane = "(centile.lane_hash('ada') % 4)";
    db.execute(&format!("UPDATE centile_store.board_lanes SET batch = batch - 1 WHERE lane = {lane}")).await;
    let found = run(&db, &["verify"]);
    assert!(found.code == Some(1) && found.out.contains("last batch and time of lane"), "{found:?}");
    run(&db, &["rebuild", "--board", "main", "--all", "--by", "dora", "--reason", "test"]).well();
    run(&db, &["verify"]).well();
}

/// `segment_members` decides the entries of segments, so only the attributes can show that it is wrong.
#[tokio::test]
async fn verify_finds_players_in_wrong_segments() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    run(&db, &["verify"]).well();
    let ada = "(SELECT internal_id FROM centile.users WHERE user_id = 'ada')";
    let damages = [
        (
            format!("DELETE FROM centile_store.segment_members WHERE segment = '' AND user_id = {ada}"),
            "segments: player ada",
            format!(
                "INSERT INTO centile_store.segment_members (board_id, user_id, segment, lane, batch, changed_at, is_member)
                 SELECT b.id, u.id, '', u.lane_hash % b.lanes, 0, '-infinity', true
                 FROM centile_store.boards b, centile_store.users u WHERE b.slug = 'main' AND u.id = {ada}"
            ),
        ),
        (
            "SELECT centile.put_user('ada', p_attributes => '{\"country\": \"FR\"}'); DELETE FROM centile_store.attribute_moves".to_owned(),
            "segments: player ada",
            format!("SELECT centile_store.move_player('main', {ada})"),
        ),
        (
            "UPDATE centile_store.periods SET segment = 'country:XX' WHERE segment = 'country:FR'".to_owned(),
            "segments: segment country:FR",
            "UPDATE centile_store.periods SET segment = 'country:FR' WHERE segment = 'country:XX'".to_owned(),
        ),
    ];
    for (damage, found, repair) in damages {
        db.execute(&damage).await;
        let verified = run(&db, &["verify"]);
        assert!(verified.code == Some(1) && verified.out.contains(found), "{damage}: {verified:?}");
        db.execute(&repair).await;
        run(&db, &["verify"]).well();
    }
    // A pending move is none.
    db.execute("SELECT centile.put_user('ada', p_attributes => '{\"country\": \"DE\"}')").await;
    run(&db, &["verify"]).well();
    drop(site);
}

/// A player who cannot be moved on a board is moved on the others, and an erasure changes the tops.
#[tokio::test]
async fn a_board_that_fails_does_not_keep_others_from_moving() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    site.board(json!({"slug": "laps", "segments": ["country"]}), &[("ada", 7)]).await;
    // The entry is in a lane that the board does not have.
    db.execute("SELECT testing.allow_damage();
                UPDATE centile_store.leaderboard l SET lane = 63 FROM centile_store.periods p, centile_store.users u
                WHERE p.ranking_id = l.ranking_id AND p.segment = 'country:DE' AND u.id = l.user_id AND u.external_id = 'ada'
                  AND p.board_id = 1").await;
    assert_eq!(set(&site, "ada", json!({"country": "FR"})).await.status, 500);
    let laps = async |segment: &str| page(&site, "laps", &format!("segment=country:{segment}")).await;
    until("laps", async || laps("FR").await == [row(1, 1, "ada", 7)] && laps("DE").await.is_empty()).await;
    let key = site.admin_key.clone();
    assert_eq!(site.json(Method::DELETE, "/v1/users/ada", &key, String::new()).await.status, 500);
    until("erased", async || laps("FR").await.is_empty()).await;
    let done = "SELECT done_at IS NOT NULL FROM centile_store.erasures";
    assert_eq!(query_scalar::<_, bool>(done).fetch_one(&db.pool().await).await.ok(), Some(true));
}

/// A move of a player without scores has a batch, which another player's first score must not repeat.
#[tokio::test]
async fn a_lane_continues_after_a_board_had_fewer_lanes() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    site.board(json!({"slug": "new", "segments": ["country"]}), &[]).await;
    let last_lane = "SELECT 'x' || n FROM generate_series(1, 1000) n WHERE centile.lane_hash('x' || n) % 4 = 3 LIMIT 1";
    let user: String = query_scalar(last_lane).fetch_one(&db.pool().await).await.unwrap();
    set(&site, &user, json!({"country": "DE"})).await.is(201);
    for lanes in [2, 4] {
        site.admin(Method::PATCH, "/v1/boards/new", json!({"lanes": lanes})).await.is(200);
    }
    site.post("/v1/boards/new/scores", json!({"user_id": user, "points": 1})).await.is(200);
    shows_on(&site, "new", "country:DE", &[row(1, 1, &user, 1)]).await;
}

/// The batch of a player's first score may have begun with attributes that a move then replaced.
#[tokio::test]
async fn a_move_makes_running_batches_start_again() {
    let db = TestDb::new().await;
    let _site = board(&db, &["--no-maintenance"]).await;
    let begun = "SELECT (b.board).structure_revision, b.batch, b.server_started_at, b.member_segments
                 FROM centile_store.boards x CROSS JOIN LATERAL centile_store.begin_batch(
                     x.id, (centile.lane_hash('new') % x.lanes)::smallint, ARRAY[x.id], '{new}', '{}', '{}', NULL, NULL) b
                 WHERE x.slug = 'main'";
    db.execute("SELECT centile.put_user('new', p_attributes => '{\"country\": \"DE\"}')").await;
    let pool = db.pool().await;
    let (_, before, _, segments): (i64, i64, chrono::DateTime<chrono::Utc>, Vec<String>) =
        sqlx::query_as(begun).fetch_one(&pool).await.unwrap();
    assert_eq!(segments, ["", "country:DE"]);
    db.execute("SELECT centile.put_user('new', p_attributes => '{\"country\": \"FR\"}');
                SELECT centile_store.move_player('main', (SELECT internal_id FROM centile.users WHERE user_id = 'new'))").await;
    let (_, after, _, segments): (i64, i64, chrono::DateTime<chrono::Utc>, Vec<String>) =
        sqlx::query_as(begun).fetch_one(&pool).await.unwrap();
    assert_eq!((after, segments), (before + 1, vec![String::new(), "country:FR".to_owned()]));
}

/// A running rebuild applies moves from the log.
#[tokio::test]
async fn a_rebuild_includes_moves_meanwhile() {
    let db = TestDb::new().await;
    let site = board(&db, &["--no-maintenance"]).await;
    let pool = db.pool().await;
    for segment in ["country:DE", "country:FR"] {
        db.execute(&format!(
            "CREATE TABLE building_{n} AS SELECT testing.begin_rebuild(p.id) AS ranking_id FROM centile_store.periods p
             WHERE p.kind = 'all_time' AND p.segment = '{segment}'",
            n = &segment[8..]
        ))
        .await;
    }
    set(&site, "ada", json!({"country": "FR"})).await.is(200);
    db.execute(
        "SELECT centile_store.swap_ranking(ranking_id) FROM building_DE;
                SELECT centile_store.swap_ranking(ranking_id) FROM building_FR",
    )
    .await;
    shows(&site, "country:DE", &[row(1, 1, "bob", 5)]).await;
    shows(&site, "country:FR", &[row(1, 1, "cyd", 6), row(2, 2, "ada", 5)]).await;
    audit::rankings_are_sound(&pool).await;
    // The command, of one segment and of all.
    run(&db, &["rebuild", "--board", "main", "--period", "all_time@country:FR", "--by", "dora", "--reason", "test"])
        .well();
    let noted = "SELECT subject FROM centile.audit_log WHERE action = 'rebuild' ORDER BY audit_id DESC LIMIT 1";
    assert_eq!(query_scalar::<_, String>(noted).fetch_one(&pool).await.unwrap(), "all_time@country:FR");
    run(&db, &["rebuild", "--board", "main", "--all", "--by", "dora", "--reason", "test"]).well();
    run(&db, &["verify", "--board", "main", "--period", "week@class:mage"]).well();
    shows(&site, "country:FR", &[row(1, 1, "cyd", 6), row(2, 2, "ada", 5)]).await;
    audit::rankings_are_sound(&pool).await;
    run(&db, &["verify"]).well();
}
