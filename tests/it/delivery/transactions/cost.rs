//! Rows that SQL reads for a page of a board's transactions.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{maintenance::layout::rows_read_of, support::TestDb};

/// The cost of a page does not depend on the number of other users and of their event ids.
#[tokio::test]
async fn a_page_reads_users_and_ids_of_its_own_players_only() {
    const PLAYERS: i32 = 5_000;
    const PAGE: i32 = 50;
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    // A long ledger, so that the planner expects large pages.
    let numbers = format!("FROM generate_series(1, {PLAYERS}) AS n ORDER BY n");
    let setup = format!(
        "SELECT centile.create_board('arena', '{{\"periods\": [\"all_time\"], \"lanes\": 1}}');
         SELECT centile.ensure_users(ARRAY(SELECT 'p' || n {numbers}));
         SELECT count(*) FROM testing.record_scores(1, 0::smallint, ARRAY(SELECT 'p' || n {numbers}), ARRAY(SELECT 1::bigint {numbers}),
             p_ids => ARRAY(SELECT 'e' || n {numbers}));
         INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
         SELECT 1, u.id, 1, now(), 0, 1 FROM centile_store.users u, generate_series(1, 30)"
    );
    sqlx::raw_sql(AssertSqlSafe(setup)).execute(&mut connection).await.unwrap();
    sqlx::query("VACUUM ANALYZE").execute(&mut connection).await.unwrap();
    let mut last: i64 = 0;
    for _ in 0..4 {
        let before = rows_read_of(&mut connection, "^(users|transaction_ids)$").await;
        let rows: Vec<(i64, String, String)> = sqlx::query_as(
            "SELECT transaction_id, user_id, event_id FROM centile_store.transactions_after(1, ARRAY[$1::bigint], $2)",
        )
        .bind(last)
        .bind(PAGE)
        .fetch_all(&mut connection)
        .await
        .unwrap();
        assert_eq!(rows.len(), 50, "a full page");
        assert!(rows.iter().all(|(_, user, event)| user[1..] == event[1..]), "{rows:?}");
        last = rows[49].0;
        let read = rows_read_of(&mut connection, "^(users|transaction_ids)$").await - before;
        assert_eq!(read, 2 * i64::from(PAGE), "a user and an id per transaction");
    }
}
