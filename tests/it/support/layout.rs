//! Manual layout changes: random steps, including some that `centile maintain` would never take.

use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::PgConnection;

/// Numbers of steps: a few, and enough to spread players over many buckets.
pub const FEW: u32 = 12;
pub const MANY: u32 = 150;

/// A change of a layout. Places are counted from 1.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Moves rows to a neighbour.
    Move { from: i32, to: i32, rows: i32 },
    /// Moves an empty bucket beside another one.
    Reposition { place: i32, beside: i32, is_above: bool },
}

/// Returns a ranking's layout number, and its players in each place.
pub async fn occupied(connection: &mut PgConnection, ranking_id: i64) -> (i32, Vec<i64>) {
    sqlx::query_as("SELECT layout, centile_store.bucket_totals(id) FROM centile_store.rankings WHERE id = $1")
        .bind(ranking_id)
        .fetch_one(connection)
        .await
        .unwrap()
}

/// Returns a possible step for these players; `None` if there are no players.
pub fn random_step(random: &mut StdRng, players: &[i64]) -> Option<Step> {
    let place = |index: usize| i32::try_from(index + 1).unwrap();
    let places = |has_players: bool| -> Vec<i32> {
        (0..players.len()).filter(|&index| (players[index] > 0) == has_players).map(place).collect()
    };
    let &from = places(true).choose(random)?;
    if let Some(&empty) = places(false).choose(random)
        && random.random_bool(0.4)
    {
        return Some(Step::Reposition { place: empty, beside: from, is_above: random.random() });
    }
    let to = if from == 1 || from < 100 && random.random() { from + 1 } else { from - 1 };
    let most = i32::try_from(players[usize::try_from(from - 1).unwrap()]).unwrap();
    // Sometimes all rows.
    let rows = if random.random_bool(0.2) { most } else { random.random_range(1..=most) };
    Some(Step::Move { from, to, rows })
}

/// Takes a step that was planned for a layout. Returns the number of rows moved, 0 for a
/// repositioned bucket, or `None` if nothing was done.
pub async fn take(
    connection: &mut PgConnection,
    ranking_id: i64,
    layout: i32,
    step: Step,
) -> sqlx::Result<Option<i32>> {
    match step {
        Step::Move { from, to, rows } => {
            let statement = "SELECT centile_store.move_boundary($1, $2, $3, $4, $5)";
            let statement = sqlx::query_scalar(statement).bind(ranking_id).bind(layout).bind(from).bind(to);
            statement.bind(rows).fetch_one(connection).await
        }
        Step::Reposition { place, beside, is_above } => {
            let statement = "SELECT centile_store.reposition_bucket($1, $2, $3, $4, $5)";
            let statement = sqlx::query_scalar(statement).bind(ranking_id).bind(layout).bind(place).bind(beside);
            let done: bool = statement.bind(is_above).fetch_one(connection).await?;
            Ok(done.then_some(0))
        }
    }
}

/// Takes random steps, so that players are in many buckets in an order unrelated to the buckets'
/// numbers. Returns the number of steps that changed something.
pub async fn scatter(connection: &mut PgConnection, ranking_id: i64, random: &mut StdRng, steps: u32) -> u32 {
    let mut taken = 0;
    for _ in 0..steps {
        let (layout, players) = occupied(connection, ranking_id).await;
        let Some(step) = random_step(random, &players) else { break };
        taken += u32::from(take(connection, ranking_id, layout, step).await.unwrap().is_some());
    }
    taken
}
