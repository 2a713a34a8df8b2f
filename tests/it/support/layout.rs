//! Layouts, kept in shape by hand: every step one by one, as `centile maintain` takes them.

use sqlx::PgConnection;

/// Steps after which a layout of the few players that tests have is in shape, or never will be.
const MANY_STEPS: u32 = 20_000;

/// Something that can be done to a layout.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Stripes of a bucket are split and merged.
    Tidy(i16),
    /// The stripe with this lower bound goes to another bucket.
    Move { bound: [i64; 3], to_bucket: i16 },
}

/// Sets what the layouts of a board aim at: players of a stripe, and from how many players on buckets are to be even.
pub async fn aim(connection: &mut PgConnection, board: &str, stripe_target: i32, balance_from: i64) {
    sqlx::query("UPDATE centile_store.boards SET stripe_target = $2, balance_from = $3 WHERE slug = $1")
        .bind(board)
        .bind(stripe_target)
        .bind(balance_from)
        .execute(connection)
        .await
        .unwrap();
}

/// What is to be done next: stripes first, then buckets.
pub async fn steps(connection: &mut PgConnection, ranking_id: i64) -> Vec<Step> {
    let buckets: Vec<i16> = sqlx::query_scalar("SELECT * FROM centile_store.buckets_to_tidy($1)")
        .bind(ranking_id)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    if buckets.is_empty() { moves(connection, ranking_id).await } else { buckets.into_iter().map(Step::Tidy).collect() }
}

/// The moves that would make buckets even.
pub async fn moves(connection: &mut PgConnection, ranking_id: i64) -> Vec<Step> {
    let moves: Vec<(i64, i64, i64, i16)> =
        sqlx::query_as("SELECT rank_key, tie_key, user_key, to_bucket FROM centile_store.stripe_moves($1)")
            .bind(ranking_id)
            .fetch_all(connection)
            .await
            .unwrap();
    moves.into_iter().map(|(a, b, c, to_bucket)| Step::Move { bound: [a, b, c], to_bucket }).collect()
}

/// Does it; gives the stripes changed, or the rows moved. `None` when a stripe could not be moved.
pub async fn take(connection: &mut PgConnection, ranking_id: i64, step: Step) -> sqlx::Result<Option<i64>> {
    match step {
        Step::Tidy(bucket) => {
            let statement = "SELECT centile_store.tidy_stripes($1, $2)::bigint";
            sqlx::query_scalar(statement).bind(ranking_id).bind(bucket).fetch_one(connection).await
        }
        Step::Move { bound: [a, b, c], to_bucket } => {
            let statement = "SELECT centile_store.move_stripe($1, $2, $3, $4, $5)";
            let statement = sqlx::query_scalar(statement).bind(ranking_id).bind(a).bind(b).bind(c);
            statement.bind(to_bucket).fetch_one(connection).await
        }
    }
}

/// Takes step after step until nothing is left, and looks at each. Returns how many there were.
pub async fn keep(
    connection: &mut PgConnection,
    ranking_id: i64,
    mut look: impl AsyncFnMut(&mut PgConnection, Step, Option<i64>),
) -> u32 {
    let mut taken = 0;
    loop {
        let steps = steps(connection, ranking_id).await;
        if steps.is_empty() {
            return taken;
        }
        for step in steps {
            let done = take(connection, ranking_id, step).await.unwrap();
            look(connection, step, done).await;
            taken += 1;
            assert!(taken < MANY_STEPS, "the layout of ranking {ranking_id} is never in shape");
        }
    }
}
