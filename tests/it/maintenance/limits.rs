//! Limits that a database approaches over months: expired ids, and numbers beyond 32 bits.

use sqlx::{Connection as _, PgConnection, query_as, query_scalar};

use crate::support::{TestDb, run};

#[tokio::test]
async fn a_call_reads_only_the_ids_that_it_deletes() {
    let db = TestDb::new().await;
    // In the order of the primary key, the ids that have expired come last.
    db.execute(
        "INSERT INTO centile_store.transaction_ids (board_id, user_id, lane, external_id, transaction_id, occurred_at, expires_at)
         SELECT 1, n, 0, 'event', n, now(), now() + interval '1 second' * (5000 - n) FROM generate_series(1, 20000) AS n;
         ANALYZE centile_store.transaction_ids",
    )
    .await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let mut transaction = connection.begin().await.unwrap();
    let deleted: i64 =
        query_scalar("SELECT centile.forget_expired_ids(100)").fetch_one(&mut *transaction).await.unwrap();
    let read: i64 = query_scalar(
        "SELECT pg_stat_get_xact_tuples_returned('centile_store.transaction_ids'::regclass)
                + (SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::bigint FROM pg_index
                   WHERE indrelid = 'centile_store.transaction_ids'::regclass)",
    )
    .fetch_one(&mut *transaction)
    .await
    .unwrap();
    assert_eq!(deleted, 100);
    assert!(read <= 1_000, "{read} rows read for {deleted} of 15,000");
    let oldest: Option<i64> = query_scalar("SELECT max(user_id) FROM centile_store.transaction_ids")
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(oldest, Some(19_900), "the ids that expired first are deleted first");
    transaction.commit().await.unwrap();
    while query_scalar::<_, i64>("SELECT centile.forget_expired_ids()").fetch_one(&mut connection).await.unwrap() > 0 {}
    let left: (i64, bool) =
        query_as("SELECT count(*), min(expires_at) >= now() - interval '1 minute' FROM centile_store.transaction_ids")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert!((4_990..=5_000).contains(&left.0) && left.1, "{left:?}");
}

#[tokio::test]
async fn imports_and_rebuilds_have_numbers_beyond_32_bits() {
    let db = TestDb::new().await;
    db.execute(
        "SELECT centile.create_board('main', p_periods => '{all_time}'); SELECT testing.submit_score('main', 'ann', 5);
         SELECT setval('centile_store.rankings_id_seq', 5000000000), setval('centile_store.imports_id_seq', 5000000000)",
    )
    .await;
    run(&db, &["rebuild", "--board", "main", "--period", "all_time"]).well();
    let ranking = "SELECT max(ranking_id) FROM centile.periods";
    assert!(query_scalar::<_, i64>(ranking).fetch_one(&db.pool().await).await.unwrap() > 5_000_000_000);
    let interrupted = async || -> (i64, i64) {
        query_as("SELECT imports_open, imports_cut_short FROM centile.upkeep")
            .fetch_one(&db.pool().await)
            .await
            .unwrap()
    };
    let mut session = PgConnection::connect(db.url()).await.unwrap();
    sqlx::query("SELECT centile_store.begin_import(1, 'scores.csv')").execute(&mut session).await.unwrap();
    assert_eq!(interrupted().await, (1, 0), "the import runs");
    session.close().await.unwrap();
    crate::support::wait::until("its session has ended", async || interrupted().await == (1, 1)).await;
}
