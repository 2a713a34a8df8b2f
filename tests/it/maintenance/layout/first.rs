//! The layout of a new period, before its first score.

use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use super::expected::Places;
use crate::{
    store::property::{
        layout::{Key, Layout, check_ranking},
        same,
    },
    support::{
        TestDb, audit,
        layout::{self, Step},
        run,
    },
};

/// Players of a full week.
const PLAYERS: i64 = 600;

/// Creates a weekly board.
async fn board(db: &TestDb, bounds: &[i64]) -> PgConnection {
    let connection = PgConnection::connect(db.url()).await.unwrap();
    let mut rules = json!({"periods": ["week"], "lanes": 2});
    if !bounds.is_empty() {
        rules["first_layout"] = json!({"bounds": bounds});
    }
    db.execute(&format!("SELECT centile.create_board('arena', '{rules}')")).await;
    db.execute(&format!("SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, {PLAYERS}) AS n))"))
        .await;
    connection
}

/// Adds scores of the first `players` players on a day, higher with their number. The lowest third
/// are equal.
async fn play(db: &TestDb, day: &str, players: i64) {
    db.execute(&format!(
        "SELECT centile.ensure_ledger_months('{day}', '{day}'), centile_store.open_periods(1, ARRAY[timestamptz '{day} 12:00Z']);
         SELECT count(*) FROM (SELECT centile.lane_hash('p' || n) % 2 AS lane, array_agg('p' || n) AS users,
                                      array_agg(greatest(n - {players} / 3, 0)::bigint) AS points
                               FROM generate_series(1, {players}) AS n GROUP BY 1) x
         CROSS JOIN LATERAL testing.record_scores(1, x.lane::smallint, x.users, x.points, p_times => array_fill(timestamptz '{day} 12:00Z', ARRAY[cardinality(x.users)]))"
    ))
    .await;
}

/// Returns the ranking of the week that contains a day, and opens the week if needed.
async fn open(connection: &mut PgConnection, day: &str) -> i64 {
    let statement = "SELECT centile_store.open_periods(1, ARRAY[($1 || ' 12:00Z')::timestamptz])";
    sqlx::query(statement).bind(day).execute(&mut *connection).await.unwrap();
    let statement = "SELECT ranking_id FROM centile_store.periods
                     WHERE starts_at <= ($1 || ' 12:00Z')::timestamptz AND ($1 || ' 12:00Z')::timestamptz < ends_at AND kind = 'week'";
    sqlx::query_scalar(statement).bind(day).fetch_one(connection).await.unwrap()
}

/// Gives each place the same number of players, except the highest. Before, all players are in the
/// lowest places.
async fn even(connection: &mut PgConnection, ranking_id: i64, players: i64) -> Layout {
    for place in 1..100 {
        let (number, of_places) = layout::occupied(connection, ranking_id).await;
        let rows = of_places[usize::try_from(place - 1).unwrap()] - players;
        if rows > 0 {
            let step = Step::Move { from: place, to: place + 1, rows: rows.try_into().unwrap() };
            let done = layout::take(connection, ranking_id, number, step).await.unwrap();
            assert_eq!(done.map(i64::from), Some(rows));
        }
    }
    check_ranking(connection, ranking_id, "even").await
}

/// Checks a first layout that copies another ranking's: no players, and a place for each rank key
/// of a bound.
async fn like(connection: &mut PgConnection, ranking_id: i64, before: &Layout, what: &str) {
    let first = check_ranking(connection, ranking_id, what).await;
    assert_eq!(first.players(), vec![0; 100], "{what}");
    let mut scores: Vec<i64> = before.bounds().into_iter().map(|bound| bound[0]).collect();
    scores.dedup();
    let mut bounds: Vec<_> = scores.into_iter().map(|score| (score, i64::MIN, i64::MIN)).collect();
    bounds.resize(100, (i64::MAX, i64::MAX, i64::MAX));
    let first: i16 = sqlx::query_scalar("SELECT (period_id % 100)::smallint FROM centile_store.rankings WHERE id = $1")
        .bind(ranking_id)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let buckets = (0..100).map(|place| (first + place) % 100).collect();
    assert_eq!(Places::read(connection, ranking_id).await, Places { buckets, bounds }, "{what}");
}

/// Checks the even layout of a full week: a place for every six players. The equal third differ
/// only in their times and ids.
fn like_a_full_week(full: &Layout) {
    assert_eq!(full.players(), vec![6; 100]);
    assert_eq!(full.bounds().len(), 100);
    let mut scores: Vec<i64> = full.bounds().iter().map(|bound| bound[0]).collect();
    scores.dedup();
    // Six players in each place from the lowest up.
    assert_eq!(scores.len(), 68, "{scores:?}");
    assert!(scores[1..].iter().eq([0].iter().chain(&(5..=395).step_by(6).collect::<Vec<_>>())), "{scores:?}");
}

/// Adds scores, and compares the ranks with the ledger.
async fn ranks_are_exact(db: &TestDb, day: &str, players: i64) {
    play(db, day, players).await;
    let pool = db.pool().await;
    let selector: String = sqlx::query_scalar(
        "SELECT 'week:' || label FROM centile_store.periods WHERE starts_at <= $1::timestamptz AND $1::timestamptz < ends_at AND kind = 'week'",
    )
    .bind(format!("{day}T12:00:00Z").parse::<chrono::DateTime<chrono::Utc>>().unwrap())
    .fetch_one(&pool)
    .await
    .unwrap();
    let found: Vec<(String, i64)> = sqlx::query_as(
        "SELECT u.external_id, r.rank FROM centile_store.users u
         CROSS JOIN LATERAL centile.player_rank('arena', u.external_id, $1) r
         WHERE substr(u.external_id, 2)::bigint <= $2 ORDER BY u.external_id",
    )
    .bind(&selector)
    // Includes some users without an entry.
    .bind(players + 20)
    .fetch_all(&pool)
    .await
    .unwrap();
    let mut expected: Vec<(String, i64)> = (1..=players)
        .map(|n| (format!("p{n}"), if n <= players / 3 { players - players / 3 + 1 } else { players - n + 1 }))
        .collect();
    expected.sort();
    same(&found, &expected, &selector);
    audit::rankings_are_sound(&pool).await;
}

#[tokio::test]
async fn a_week_begins_with_the_bounds_of_the_last_one() {
    for state in ["open", "closed", "removed"] {
        let db = TestDb::new().await;
        // The bounds of a past week have priority over the hints.
        let mut connection = board(&db, &[0, 100]).await;
        db.execute("UPDATE centile_store.boards SET layout_bounds = '{}'").await;
        play(&db, "2024-01-03", PLAYERS).await;
        let first = open(&mut connection, "2024-01-03").await;
        let full = even(&mut connection, first, PLAYERS / 100).await;
        like_a_full_week(&full);
        db.execute("UPDATE centile_store.boards SET layout_bounds = '{0,100}'").await;
        if state != "open" {
            run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]).well();
        }
        if state == "removed" {
            let output = run(&db, &["maintain"]).well();
            assert!(
                output.contains("rows of closed periods and replaced rankings removed")
                    && !output.contains(" 0 rows of closed"),
                "{output}"
            );
        }
        let second = open(&mut connection, "2024-01-10").await;
        like(&mut connection, second, &full, state).await;

        // Scores go to the right bucket from the first on. The bounds fit a smaller week too.
        ranks_are_exact(&db, "2024-01-10", 30).await;
        let output = run(&db, &["maintain"]).well();
        assert!(output.contains("layouts     0 boundaries moved with 0 rows, 0 buckets repositioned\n"), "{output}");
        let small = check_ranking(&mut connection, second, "a small week").await;
        assert_eq!(small.players().iter().sum::<i64>(), 30);
        ranks_are_exact(&db, "2024-01-17", 300).await;
        let third = open(&mut connection, "2024-01-17").await;
        assert_eq!(check_ranking(&mut connection, third, "after a small week").await.bounds(), small.bounds());
    }
}

#[tokio::test]
async fn a_week_without_scores_passes_on_earlier_bounds() {
    let db = TestDb::new().await;
    let mut connection = board(&db, &[]).await;
    play(&db, "2024-01-03", PLAYERS).await;
    // Opened before the first week has bounds, so it never has any.
    let bare = open(&mut connection, "2024-01-10").await;
    assert_eq!(check_ranking(&mut connection, bare, "no bounds yet").await.bounds().len(), 1);
    let first = open(&mut connection, "2024-01-03").await;
    let full = even(&mut connection, first, PLAYERS / 100).await;
    for day in ["2024-01-17", "2024-01-24"] {
        let quiet = open(&mut connection, day).await;
        like(&mut connection, quiet, &full, day).await;
    }
    for week in ["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22"] {
        run(&db, &["close", "--board", "arena", "--period", &format!("week:{week}")]).well();
    }
    let last = open(&mut connection, "2024-01-31").await;
    like(&mut connection, last, &full, "after quiet weeks").await;
}

#[tokio::test]
async fn the_first_period_of_a_kind_begins_with_the_hints_or_one_bucket() {
    let mut many: Vec<i64> = (-48..=48).map(|n| n * 1_000).collect();
    many.extend([-i64::MAX, i64::MAX]);
    let many = format!("{{{}}}", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    for (order, hints, bounds) in [
        ("desc", "{-5,10,20}", vec![-5, 10, 20]),
        ("asc", "{-5,10,20}", vec![-20, -10, 5]),
        // This value cannot be negated, and a bound below all scores has no effect.
        ("asc", "{-9223372036854775808,3}", vec![-3]),
        ("desc", "{}", vec![]),
        ("asc", &many, [vec![-i64::MAX], (-48..=48).map(|n| n * 1_000).collect(), vec![i64::MAX]].concat()),
    ] {
        let db = TestDb::new().await;
        let mut connection = board(&db, &[]).await;
        db.execute(&format!("UPDATE centile_store.boards SET score_order = '{order}', layout_bounds = '{hints}'"))
            .await;
        let ranking = open(&mut connection, "2024-01-03").await;
        let hinted = check_ranking(&mut connection, ranking, hints).await;
        let expected: Vec<Key> =
            [&[i64::MIN][..], &bounds].concat().into_iter().map(|bound| [bound, i64::MIN, i64::MIN]).collect();
        assert_eq!(hinted.bounds(), expected, "{order} {hints}");
        assert_eq!(hinted.occupied(), [0_i16; 0]);
        // The next period begins in the same way.
        let next = open(&mut connection, "2024-01-10").await;
        let next = check_ranking(&mut connection, next, hints).await;
        assert_eq!(next.bounds(), expected.into_iter().filter(|bound| bound[0] < i64::MAX).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_season_begins_with_the_bounds_of_the_one_before() {
    let db = TestDb::new().await;
    let mut connection = board(&db, &[]).await;
    let season = async |connection: &mut PgConnection, name: &str, from: &str, until: &str| -> (i64, Layout) {
        let statement = format!("SELECT centile.create_season('arena', '{name}', '{from}', '{until}')");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
        let ranking: i64 =
            sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods WHERE kind = 'season' AND label = $1")
                .bind(name)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
        (ranking, check_ranking(connection, ranking, name).await)
    };
    let (first, begun) = season(&mut connection, "one", "2024-01-01Z", "2024-02-01Z").await;
    assert_eq!(begun.bounds().len(), 1);
    play(&db, "2024-01-03", PLAYERS).await;
    let week = open(&mut connection, "2024-01-03").await;
    check_ranking(&mut connection, week, "a week").await;
    let full = even(&mut connection, first, PLAYERS / 100).await;
    like_a_full_week(&full);
    let (second, _) = season(&mut connection, "two", "2024-02-01Z", "2024-03-01Z").await;
    like(&mut connection, second, &full, "the second season").await;
    // Created later, but earlier in time than all others.
    assert_eq!(season(&mut connection, "zero", "2023-12-01Z", "2024-01-01Z").await.1.bounds().len(), 1);
    // A week copies weeks only.
    let next = open(&mut connection, "2024-01-10").await;
    assert_eq!(check_ranking(&mut connection, next, "a week").await.bounds().len(), 1);
}

/// Small rankings have one bucket each. If all began with the same table, every batch of every board
/// would change it.
#[tokio::test]
async fn new_rankings_begin_with_different_bucket_tables() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main', '{\"periods\": [\"all_time\", \"week\"]}')").await;
    db.execute("SELECT centile.create_board('other', '{\"periods\": [\"all_time\"]}')").await;
    for board in ["main", "other"] {
        db.execute(&format!("SELECT testing.submit_score('{board}', 'p' || n, n) FROM generate_series(1, 3) AS n"))
            .await;
    }
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let tables: Vec<i64> = sqlx::query_scalar(
        "SELECT count(DISTINCT b.bucket) FROM centile_store.leaderboard_bucket b
         UNION ALL SELECT count(DISTINCT b.ranking_id) FROM centile_store.leaderboard_bucket b",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(tables, [3, 3]);
}
