//! Rows that SQL reads for a rank, a page or neighbours, among any number of equals.

use rand::{SeedableRng as _, rngs::StdRng};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{
    maintenance::layout::rows_read,
    store::property::{Reproducible, seeds},
    support::{
        TestDb,
        layout::{self, Step},
    },
};

/// Rows read by a look-up of a player.
#[derive(Debug)]
struct LookUp {
    place: i32,
    is_beside_equals: bool,
    rows: i64,
}

/// Looks up players of a ranking one by one, as the service does.
async fn look_up(connection: &mut PgConnection, ranking_id: i64, players: &[String]) -> Vec<LookUp> {
    let (board, period): (i32, i64) =
        sqlx::query_as("SELECT board_id, period_id FROM centile_store.rankings WHERE id = $1")
            .bind(ranking_id)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
    let mut found = Vec::new();
    for player in players {
        let before = rows_read(connection).await;
        let (place, is_beside_equals): (i32, bool) = sqlx::query_as(
            "SELECT place, beside_equals IS NOT NULL
             FROM centile_store.bucket_standings($1, $2, $3, NULL, NULL, ARRAY[$4], NULL, NULL)",
        )
        .bind(board)
        .bind(period)
        .bind(ranking_id)
        .bind(player)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        found.push(LookUp { place, is_beside_equals, rows: rows_read(connection).await - before });
    }
    found
}

/// Creates a board with one lane. An expression in `n` gives the players' scores; all of them are
/// in one bucket.
async fn players(connection: &mut PgConnection, board: &str, players: i32, score: &str) -> i64 {
    let statement = format!(
        "SELECT centile.create_board('{board}', '{{\"periods\": [\"all_time\"], \"lanes\": 1}}');
         SELECT centile.ensure_users(ARRAY(SELECT 'p' || n FROM generate_series(1, {players}) AS n));
         SELECT count(*) FROM testing.record_scores((SELECT id FROM centile_store.boards WHERE slug = '{board}'), 0::smallint,
             ARRAY(SELECT 'p' || n FROM generate_series(1, {players}) AS n ORDER BY n),
             ARRAY(SELECT ({score})::bigint FROM generate_series(1, {players}) AS n ORDER BY n));
         ANALYZE"
    );
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await.unwrap();
    let ranking = "SELECT p.ranking_id FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE b.slug = $1";
    sqlx::query_scalar(ranking).bind(board).fetch_one(connection).await.unwrap()
}

async fn take(connection: &mut PgConnection, ranking_id: i64, step: Step) {
    let number = layout::occupied(connection, ranking_id).await.0;
    assert!(layout::take(connection, ranking_id, number, step).await.unwrap().is_some(), "{step:?}");
}

/// Ranks are counted from the probably nearer end of the bucket. Equals are counted within one
/// bucket if all of them are in it.
#[tokio::test]
async fn a_rank_among_equals_reads_no_more_rows_than_another() {
    const PLAYERS: i32 = 6_000;
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    // The settings of the service's connections.
    let settings = "SET enable_bitmapscan = off; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";
    sqlx::raw_sql(settings).execute(&mut connection).await.unwrap();
    let names =
        |from: i32, until: i32, step: usize| (from..=until).step_by(step).map(|n| format!("p{n}")).collect::<Vec<_>>();

    // Distinct scores, ascending with n, a third in each of three places. The first look-up makes
    // plans.
    let ranking = players(&mut connection, "distinct", PLAYERS, "n").await;
    for step in [Step::Move { from: 1, to: 2, rows: 4_000 }, Step::Move { from: 2, to: 3, rows: 2_000 }] {
        take(&mut connection, ranking, step).await;
    }
    // Without VACUUM, dead rows of moved players would be read.
    sqlx::query("VACUUM ANALYZE").execute(&mut connection).await.unwrap();
    for (n, found) in (1..=PLAYERS).step_by(97).zip(look_up(&mut connection, ranking, &names(1, PLAYERS, 97)).await) {
        let n = i64::from(n);
        // The lowest and the highest place have no known end of their scores.
        let (place, wanted) = match n {
            ..=2_000 => (1, n),
            2_001..=4_000 => (2, (n - 2_000).min(4_001 - n)),
            _ => (3, 6_001 - n),
        };
        assert_eq!((found.place, found.is_beside_equals), (place, false), "{n}");
        assert!((wanted - 1..=wanted + 2).contains(&found.rows), "{found:?} of {n}, {wanted} rows from an end");
    }

    // Two thirds have one score, some a better and some a worse one.
    let ranking =
        players(&mut connection, "equal", PLAYERS, "CASE WHEN n <= 1000 THEN n WHEN n <= 5000 THEN 5000 ELSE n END")
            .await;
    for step in [
        Step::Move { from: 1, to: 2, rows: 1_000 },
        Step::Move { from: 2, to: 3, rows: 1_000 },
        Step::Move { from: 1, to: 2, rows: 4_000 },
    ] {
        take(&mut connection, ranking, step).await;
    }
    sqlx::query("VACUUM ANALYZE").execute(&mut connection).await.unwrap();
    let (_, players_at) = layout::occupied(&mut connection, ranking).await;
    assert_eq!(players_at[..4], [1_000, 4_000, 1_000, 0]);
    for found in look_up(&mut connection, ranking, &names(1_001, 5_000, 157)).await {
        assert_eq!((found.place, found.is_beside_equals), (2, false));
        assert!((1..=4_000 + 2).contains(&found.rows), "{found:?}");
    }
    // Look-ups of other players read no rows of the equals.
    for found in look_up(&mut connection, ranking, &[names(1, 1_000, 131), names(5_001, 6_000, 131)].concat()).await {
        assert!(found.place != 2 && !found.is_beside_equals && found.rows <= 1_000 + 2, "{found:?}");
    }

    // The equals are in two buckets; of each, at most all rows are read.
    for step in [Step::Reposition { place: 4, beside: 2, is_above: false }, Step::Move { from: 3, to: 2, rows: 2_000 }]
    {
        take(&mut connection, ranking, step).await;
    }
    sqlx::query("VACUUM ANALYZE").execute(&mut connection).await.unwrap();
    let (_, players_at) = layout::occupied(&mut connection, ranking).await;
    assert_eq!(players_at[..5], [1_000, 2_000, 2_000, 1_000, 0]);
    for found in look_up(&mut connection, ranking, &names(1_001, 5_000, 157)).await {
        assert!(found.is_beside_equals, "{found:?}");
        assert!((1..=2 * 2_000 + 2).contains(&found.rows), "{found:?}");
    }
    for found in look_up(&mut connection, ranking, &[names(1, 1_000, 131), names(5_001, 6_000, 131)].concat()).await {
        assert!(!found.is_beside_equals && found.rows <= 1_000 + 2, "{found:?}");
    }
}

/// A SQL function that is not inlined is planned at each call, and computes columns that the query
/// does not use.
#[tokio::test]
async fn a_look_up_of_players_is_one_plan_without_replanned_functions() {
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let kept: Vec<String> = sqlx::query_scalar(
        "SELECT p.proname::text FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE l.lanname <> 'sql'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    for (query, around) in [
        (include_str!("../../../sql/queries/standing.sql"), ""),
        (include_str!("../../../sql/queries/standing_around.sql"), ", 4"),
    ] {
        let prepared = format!("PREPARE look_up AS {query}");
        sqlx::raw_sql(AssertSqlSafe(prepared)).execute(&mut connection).await.unwrap();
        let explain = format!("EXPLAIN EXECUTE look_up(1, 1, 1, NULL, NULL, 'ann', NULL, NULL{around})");
        let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut connection).await.unwrap();
        let scans = plan.iter().filter_map(|line| line.split_once("Function Scan on ")?.1.split(' ').next());
        let scans: Vec<&str> = scans.collect();
        assert!(scans.contains(&"applied_key") && scans.contains(&"above_in_bucket"), "{plan:#?}");
        assert_eq!(scans.contains(&"bucket_keys_around"), !around.is_empty(), "{plan:#?}");
        for function in scans {
            assert!(kept.iter().any(|name| name == function), "{function}: {plan:#?}");
        }
        sqlx::raw_sql("DEALLOCATE look_up").execute(&mut connection).await.unwrap();
    }
}

/// Creates a board with groups of equal scores, the best first, that begin and end in different
/// buckets. Returns its ranking, and the ranks of its players by position.
async fn groups_of_equals(db: &TestDb, connection: &mut PgConnection, sizes: &[i64]) -> (i64, Vec<i64>) {
    db.execute("SELECT centile.create_board('main', '{\"periods\": [\"all_time\"], \"first_layout\": {\"bounds\": [997,999]}}')").await;
    let (mut ranks, mut users, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    for (score, equals) in (0..1_000_i64).rev().zip(sizes) {
        let rank = i64::try_from(ranks.len()).unwrap() + 1;
        for n in 0..*equals {
            ranks.push(rank);
            users.push(format!("{score}-{n}"));
            scores.push(score);
        }
    }
    sqlx::query("SELECT testing.submit_score('main', u, s) FROM unnest($1::text[], $2::bigint[]) AS x (u, s)")
        .bind(users)
        .bind(scores)
        .execute(&mut *connection)
        .await
        .unwrap();
    let ranking =
        sqlx::query_scalar("SELECT ranking_id FROM centile_store.periods").fetch_one(connection).await.unwrap();
    (ranking, ranks)
}

/// Few equals above a page's first player are counted one by one, many are not.
#[tokio::test]
async fn a_page_may_begin_among_any_number_of_equals() {
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let (ranking, ranks) = groups_of_equals(&db, &mut connection, &[1, 2, 19, 20, 21, 25]).await;
    for seed in seeds(2) {
        let _named = Reproducible(seed);
        for from in 1..=ranks.len() {
            let page: Vec<i64> =
                sqlx::query_scalar("SELECT rank FROM centile.page('main', 'all_time', $1, 30) ORDER BY position")
                    .bind(i64::try_from(from).unwrap())
                    .fetch_all(&mut connection)
                    .await
                    .unwrap();
            assert_eq!(page, ranks[from - 1..].iter().copied().take(30).collect::<Vec<_>>(), "the page from {from}");
        }
        // Again with equals in many buckets.
        layout::scatter(&mut connection, ranking, &mut StdRng::seed_from_u64(seed), layout::MANY).await;
    }
}

#[tokio::test]
async fn neighbours_may_be_among_any_number_of_equals() {
    const AROUND: usize = 3;
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    // Up to two dozen players above the neighbours are read. These may end a group or not, or end
    // in another bucket.
    let (ranking, ranks) =
        groups_of_equals(&db, &mut connection, &[1, 2, 4, 22, 23, 24, 25, 26, 27, 28, 29, 30, 60, 3, 1]).await;
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT user_id FROM centile.page('main', 'all_time', 1, 1000) ORDER BY position")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert_eq!(ids.len(), ranks.len());
    for seed in seeds(2) {
        let _named = Reproducible(seed);
        let found: Vec<(i64, String, i64)> = sqlx::query_as(
            "SELECT x.n, a.user_id, a.rank FROM unnest($1::text[]) WITH ORDINALITY AS x (id, n)
             CROSS JOIN LATERAL centile.players_around('main', x.id, 'all_time', $2) a ORDER BY x.n, a.position",
        )
        .bind(&ids)
        .bind(i32::try_from(AROUND).unwrap())
        .fetch_all(&mut connection)
        .await
        .unwrap();
        for (index, id) in ids.iter().enumerate() {
            let of_this = found.iter().filter(|row| usize::try_from(row.0) == Ok(index + 1));
            let around: Vec<(String, i64)> = of_this.map(|(_, user, rank)| (user.clone(), *rank)).collect();
            let shown = index.saturating_sub(AROUND)..(index + AROUND + 1).min(ids.len());
            let wanted: Vec<(String, i64)> = shown.map(|at| (ids[at].clone(), ranks[at])).collect();
            assert_eq!(around, wanted, "around {id}, at {}", index + 1);
        }
        // Again with equals in many buckets.
        layout::scatter(&mut connection, ranking, &mut StdRng::seed_from_u64(seed), layout::MANY).await;
    }
}
