//! How a new period is cut before anybody has scored in it.

use sqlx::{Connection as _, PgConnection};

use crate::{
    sql_property::{
        layout::{Layout, check_ranking},
        same,
    },
    support::{TestDb, audit, layout, run},
};

/// Players of a full week.
const PLAYERS: i64 = 600;

/// A weekly board with stripes of a few players.
async fn board(db: &TestDb, bounds: &str) -> PgConnection {
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let statement = format!(
        "SELECT centile.create_board('arena', p_periods => '{{week}}', p_lanes => 2::smallint, p_layout_bounds => '{bounds}')"
    );
    db.execute(&statement).await;
    db.execute(&format!("SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, {PLAYERS}) AS n))"))
        .await;
    layout::aim(&mut connection, "arena", 4, 0).await;
    connection
}

/// The first `players` of all score on a day, more the higher their number: a third of them level at the lower end.
async fn play(db: &TestDb, day: &str, players: i64) {
    db.execute(&format!(
        "SELECT centile.ensure_ledger_months('{day}', '{day}'), centile.open_periods(1, ARRAY[timestamptz '{day} 12:00Z']);
         SELECT count(*) FROM (SELECT centile.lane_hash('p' || n) % 2 AS lane, array_agg('p' || n) AS users,
                                      array_agg(greatest(n - {players} / 3, 0)::bigint) AS points
                               FROM generate_series(1, {players}) AS n GROUP BY 1) x
         CROSS JOIN LATERAL testing.record_scores(1, x.lane::smallint, x.users, x.points, p_times => array_fill(timestamptz '{day} 12:00Z', ARRAY[cardinality(x.users)]))"
    ))
    .await;
}

/// The week that a day lies in, opened if it is not open yet.
async fn open(connection: &mut PgConnection, day: &str) -> i64 {
    let statement = "SELECT centile.open_periods(1, ARRAY[($1 || ' 12:00Z')::timestamptz])";
    sqlx::query(statement).bind(day).execute(&mut *connection).await.unwrap();
    let statement = "SELECT ranking_id FROM centile_store.periods
                     WHERE starts_at <= ($1 || ' 12:00Z')::timestamptz AND ($1 || ' 12:00Z')::timestamptz < ends_at AND kind = 'week'";
    sqlx::query_scalar(statement).bind(day).fetch_one(connection).await.unwrap()
}

async fn keep(connection: &mut PgConnection, ranking_id: i64) -> Layout {
    layout::keep(connection, ranking_id, async |_, _, _| {}).await;
    check_ranking(connection, ranking_id, "kept").await
}

/// Looks at a first layout that was cut as the players of a full week stood: each of its stripes would hold about a hundredth of
/// them, but for the third who are level, whom no score can cut.
fn like_a_full_week(first: &Layout, players: i64) {
    let bounds = first.bounds();
    assert!((60..=100).contains(&bounds.len()), "{} stripes", bounds.len());
    let buckets: Vec<i16> = first.stripes().iter().map(|stripe| stripe.0).collect();
    let mut distinct = buckets.clone();
    distinct.dedup();
    assert_eq!(distinct, buckets, "a bucket for each stripe");
    // A third of the players have 0, then one has each score.
    let scores: Vec<i64> = (1..=players).map(|n| (n - players / 3).max(0)).collect();
    for pair in bounds.windows(2).filter(|pair| pair[0][0] > 0) {
        let within = scores.iter().filter(|score| (pair[0][0]..pair[1][0]).contains(*score)).count();
        // A bound is that of a stripe, of which there are some two to a hundredth.
        assert!((1..=20).contains(&within), "{within} players from {} to {}", pair[0][0], pair[1][0]);
    }
}

/// Scores from the first on, and ranks that are as the ledger says.
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
    // Some who have no entry, too.
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
async fn a_week_begins_as_the_last_one_stood_open_or_closed_or_removed() {
    let mut bounds = Vec::new();
    for state in ["open", "closed", "removed"] {
        let db = TestDb::new().await;
        let mut connection = board(&db, "{0,100}").await;
        play(&db, "2024-01-03", PLAYERS).await;
        let first = open(&mut connection, "2024-01-03").await;
        keep(&mut connection, first).await;
        if state != "open" {
            run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]).well();
        }
        if state == "removed" {
            let told = run(&db, &["maintain"]).well();
            assert!(
                told.contains("rows of closed periods and of replaced rankings removed")
                    && !told.contains(" 0 rows of closed"),
                "{told}"
            );
        }
        let second = open(&mut connection, "2024-01-10").await;
        let layout = check_ranking(&mut connection, second, state).await;
        like_a_full_week(&layout, PLAYERS);
        bounds.push(layout.bounds());

        // Scores go where they belong from the first on; the shape fits a smaller week too.
        ranks_are_exact(&db, "2024-01-10", 30).await;
        let kept = keep(&mut connection, second).await;
        assert_eq!(kept.buckets().iter().sum::<i64>(), 30);
        ranks_are_exact(&db, "2024-01-17", 300).await;
    }
    assert!(bounds.iter().all(|others| *others == bounds[0]));
}

#[tokio::test]
async fn a_week_in_which_nobody_scored_hands_on_the_shape_of_the_one_before() {
    let db = TestDb::new().await;
    let mut connection = board(&db, "{}").await;
    play(&db, "2024-01-03", PLAYERS).await;
    let first = open(&mut connection, "2024-01-03").await;
    keep(&mut connection, first).await;
    let second = open(&mut connection, "2024-01-10").await;
    let quiet = keep(&mut connection, second).await;
    let third = open(&mut connection, "2024-01-17").await;
    let layout = check_ranking(&mut connection, third, "after a quiet week").await;
    like_a_full_week(&layout, PLAYERS);
    assert_eq!(quiet.buckets(), vec![0; 100]);
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-01"]).well();
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-08"]).well();
    run(&db, &["close", "--board", "arena", "--period", "week:2024-01-15"]).well();
    let fourth = open(&mut connection, "2024-01-24").await;
    let layout = check_ranking(&mut connection, fourth, "after two quiet weeks").await;
    like_a_full_week(&layout, PLAYERS);
}

#[tokio::test]
async fn the_first_of_its_kind_begins_with_the_hints_or_with_one_stripe() {
    let db = TestDb::new().await;
    let mut connection = board(&db, "{-5,10,20}").await;
    let ranking = open(&mut connection, "2024-01-03").await;
    let hinted = check_ranking(&mut connection, ranking, "hints").await;
    assert_eq!(hinted.bounds().into_iter().map(|bound| bound[0]).collect::<Vec<_>>(), [i64::MIN, -5, 10, 20]);
    assert_eq!(hinted.stripes(), [(12, 0), (37, 0), (62, 0), (87, 0)]);
    // Too few players for a second stripe tell nothing: the hints go on.
    play(&db, "2024-01-03", 1).await;
    db.execute("UPDATE centile_store.boards SET stripe_target = 400").await;
    keep(&mut connection, ranking).await;
    let next = open(&mut connection, "2024-01-10").await;
    assert_eq!(check_ranking(&mut connection, next, "hints again").await.bounds().len(), 4);
    // A board without hints, and nothing to go by.
    let db = TestDb::new().await;
    let mut connection = board(&db, "{}").await;
    let alone = open(&mut connection, "2024-01-03").await;
    assert_eq!(check_ranking(&mut connection, alone, "one stripe").await.stripes(), [(50, 0)]);
}

#[tokio::test]
async fn a_season_begins_as_the_one_before_stood() {
    let db = TestDb::new().await;
    let mut connection = board(&db, "{}").await;
    let season = async |connection: &mut PgConnection, name: &str, from: &str, until: &str| -> Layout {
        let statement = format!("SELECT centile.create_season('arena', '{name}', '{from}', '{until}')");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
        let ranking: i64 =
            sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods WHERE kind = 'season' AND label = $1")
                .bind(name)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
        check_ranking(connection, ranking, name).await
    };
    assert_eq!(season(&mut connection, "one", "2024-01-01Z", "2024-02-01Z").await.stripes(), [(50, 0)]);
    play(&db, "2024-01-03", PLAYERS).await;
    let rankings: Vec<i64> =
        sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods").fetch_all(&mut connection).await.unwrap();
    for ranking in rankings {
        keep(&mut connection, ranking).await;
    }
    like_a_full_week(&season(&mut connection, "two", "2024-02-01Z", "2024-03-01Z").await, PLAYERS);
    // Made later, and begins before any other.
    assert_eq!(season(&mut connection, "zero", "2023-12-01Z", "2024-01-01Z").await.stripes(), [(50, 0)]);
}
