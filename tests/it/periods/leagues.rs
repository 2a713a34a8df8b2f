//! Closing the periods of leagues: killed, late, and compared with a model.

use std::cell::OnceCell;

use centile::dev::local::PostgresOptions;
use sqlx::{PgPool, query_scalar};

use super::killed_close::{PAST, STEPS};
use crate::support::{
    amount,
    killing::Killing,
    leagues::{Simulation, cohorts_are_sound},
    own_postgres, random,
};

/// Members, moves and divisions, without ids of cohorts.
const RESULTS: &str = "
    SELECT format('%s %s %s %s %s %s %s', h.period, h.user_id, h.division, h.rank, h.score, h.next_division,
                  (SELECT string_agg(o.user_id::text, ',' ORDER BY o.user_id) FROM centile_store.league_members o WHERE o.cohort_id = h.cohort_id))
    FROM centile.league_history h ORDER BY 1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_close_moves_each_player_once() {
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let pool = PgPool::connect(&postgres.url("postgres")).await.unwrap();
    // The league is there before the scores.
    let (board, scores) = PAST.split_once(';').unwrap();
    let league = "SELECT centile.set_league('arena-league', 'arena', 'week', 30, '{bronze,silver,gold}', 7, 7, 'form', 'relegate');
        UPDATE centile_store.leagues SET starts_at = '2024-01-01Z', next_from = '2024-01-01Z'";
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("{board};{league};{scores}"))).execute(&pool).await.unwrap();
    pool.close().await;
    let wanted: OnceCell<Vec<String>> = OnceCell::new();
    let steps = [&STEPS[..], &["place_waiting"]].concat();
    Killing { command: &["close", "--due"], steps: &steps, kills: amount(1, 6), busy: "another process is closing" }
        .run(
            &postgres,
            async |_| {},
            async |pool| {
                let found: Vec<String> = query_scalar(RESULTS).fetch_all(pool).await.unwrap();
                assert!(found.len() > 3_000, "{} results", found.len());
                assert!(
                    found == *wanted.get_or_init(|| found.clone()),
                    "other results than those of an undisturbed run"
                );
                cohorts_are_sound(pool).await;
                let messages: i64 = query_scalar("SELECT count(*) FROM centile_store.outbox WHERE payload ? 'league'")
                    .fetch_one(pool)
                    .await
                    .unwrap();
                assert_eq!(messages, 5);
            },
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weeks_agree_with_a_model() {
    let seed = random::seed();
    let small = Simulation {
        weeks: amount(3, 20),
        players: 300,
        kills: 3,
        size: 10,
        promote: 3,
        relegate: 3,
        by_form: false,
        relegates_idle: false,
        ties_up: false,
    };
    assert!(small.run(seed).await >= 900);
    let (players, kills) = (amount(300, 100_000), amount(3, 30));
    Simulation { players, kills, by_form: true, relegates_idle: true, ties_up: true, ..small }.run(seed).await;
}
