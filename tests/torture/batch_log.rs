//! The log of batches over a day: deleting old batches keeps it at its size.

use std::time::Duration;

use centile::dev::local::PostgresOptions;
use sqlx::{Connection as _, PgConnection, query, query_as};

use crate::{report::Trial, support::own_postgres};

/// Simulated minutes between two reports. The table is full after 20 minutes.
const REPORT_EVERY: i64 = 120;
/// Batches of one simulated minute, at 100 a second.
const BATCHES: i64 = 6_000;
/// Shortest real time of a simulated minute. Autovacuum looks every second here, so once in about
/// three simulated minutes; by default it looks once a minute.
const MINUTE: Duration = Duration::from_millis(300);

/// Batches of a simulated minute with 25 changes each, in four lanes.
const WRITE: &str = "
    INSERT INTO centile_store.batch_log (board_id, lane, batch, changes, ranking_ids, user_ids, was_rank_keys, was_tie_keys, rank_keys, tie_keys, written_at)
    SELECT 1, n % 4, ($1 * $2 + n) / 4 + 1, 25, k, k, k, k, k, k,
           timestamptz '2026-01-01Z' + make_interval(mins => $1::integer, secs => n * 60.0 / $2)
    FROM generate_series(0, $2 - 1) AS n CROSS JOIN LATERAL (
        SELECT ARRAY(SELECT (random() * 1e7)::bigint FROM generate_series(1, 25) WHERE n >= 0) AS k) k";
/// Statement of `maintain`, with the clock of the simulation.
const DELETE: &str = "
    SELECT centile_store.forget_batches(now() - timestamptz '2026-01-01Z' - make_interval(mins => $1::integer + 1) + interval '20 minutes')";
const SIZES: &str = "
    SELECT (SELECT count(*) FROM centile_store.batch_log), pg_relation_size('centile_store.batch_log'),
           pg_indexes_size('centile_store.batch_log')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_keeps_its_size_over_a_day() {
    let mut trial = Trial::begin(
        "batch_log",
        "a day of the log at 100 batches a second",
        "at most 20 % larger after a day than after two hours",
    );
    // Time runs 200 times as fast, so vacuum must not pause between pages.
    let settings = [("autovacuum_naptime", "1s"), ("autovacuum_vacuum_cost_delay", "0")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let postgres = own_postgres(PostgresOptions { settings, ..PostgresOptions::ephemeral() }).await;
    let mut connection = PgConnection::connect(&postgres.url("postgres")).await.unwrap();
    query("SELECT centile.create_board('main', '{\"lanes\": 4}')").execute(&mut connection).await.unwrap();
    let mut sizes = Vec::new();
    for minute in 0..24 * 60 {
        let begun = tokio::time::Instant::now();
        query(WRITE).bind(minute).bind(BATCHES).execute(&mut connection).await.unwrap();
        query(DELETE).bind(minute).execute(&mut connection).await.unwrap();
        tokio::time::sleep_until(begun + MINUTE).await;
        if (minute + 1) % REPORT_EVERY == 0 {
            let (rows, heap, index): (i64, i64, i64) = query_as(SIZES).fetch_one(&mut connection).await.unwrap();
            println!("hour {}: {rows} rows, {heap} bytes, indexes {index} bytes", (minute + 1) / 60);
            sizes.push((heap + index) >> 20);
        }
    }
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    let largest = sizes.iter().copied().max().unwrap_or_default();
    trial.saw(format!("{first} MB after two hours, {last} MB after a day, {largest} MB at most"));
    trial.expect(last * 10 <= first * 12, format!("{}% of the size after two hours", last * 100 / first));
    trial.end();
}
