//! The stored entries of a board, now and as of earlier batches, and its ledger.

use chrono::{DateTime, Utc};
use rand::{rngs::StdRng, seq::IndexedRandom as _};
use sqlx::PgConnection;

use super::{
    Players,
    board::{Board, Moment, Period},
    compare::same,
};
use crate::support::{
    amount,
    oracle::{Act, Entry},
};

/// An entry: period, user, score, rank key, tie key, time, whether only zeros count.
type Stored = (i64, i64, i64, i64, i64, Option<DateTime<Utc>>, bool);

/// A row of `centile.standings`: period, position, rank, user, name, score, time, second number.
type Standing = (i64, i64, i64, String, String, i64, Option<DateTime<Utc>>, Option<i64>);

/// Compares the entries of all periods as stored, as recomputed from the ledger, and as the view
/// shows them.
pub async fn check(connection: &mut PgConnection, board: &Board, players: &Players) {
    let mut expected = Vec::new();
    let mut shown = Vec::new();
    for period in &board.periods {
        let places = board.oracle.standings(period.slice);
        expected.extend(stored(board, period, places.iter().map(|place| place.entry).collect()));
        shown.extend(places.iter().map(|place| {
            let entry = place.entry;
            let (user, player) = players.iter().find(|(_, player)| player.internal_id == entry.user).unwrap();
            let name = player.name.clone();
            (period.id, place.position, place.rank, user.clone(), name, entry.score, entry.reached_at, entry.second())
        }));
    }
    let found: Vec<Stored> = sqlx::query_as(
        "SELECT p.period_id, l.user_id, l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros
         FROM centile.periods p JOIN centile_store.leaderboard l USING (ranking_id)
         WHERE p.board = $1 ORDER BY p.period_id, l.user_id",
    )
    .bind(&board.slug)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    same(&found, &expected, &format!("entries of {}", board.slug));

    let some: Vec<i64> = players.values().map(|player| player.internal_id).step_by(3).collect();
    let of_some: Vec<Stored> = expected.iter().filter(|row| some.contains(&row.1)).copied().collect();
    for (users, expected) in [(None, &expected), (Some(some), &of_some)] {
        let found: Vec<Stored> = sqlx::query_as(
            "SELECT p.period_id, e.*
             FROM centile.periods p CROSS JOIN LATERAL centile.entries_from_ledger(p.period_id, NULL, $2) e
             WHERE p.board = $1 ORDER BY p.period_id, e.user_id",
        )
        .bind(&board.slug)
        .bind(&users)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
        same(&found, expected, &format!("entries_from_ledger of {users:?} on {}", board.slug));
    }

    let found: Vec<Standing> = sqlx::query_as(
        "SELECT p.period_id, s.position, s.rank, s.user_id, s.user_name, s.score, s.reached_at, s.tiebreak
         FROM centile.standings s JOIN centile.periods p USING (board, kind, label)
         WHERE s.board = $1 ORDER BY p.period_id, s.position",
    )
    .bind(&board.slug)
    .fetch_all(connection)
    .await
    .unwrap();
    same(&found, &shown, &format!("centile.standings of {}", board.slug));
}

/// Compares earlier states, each lane as of a different batch.
pub async fn past(connection: &mut PgConnection, board: &Board, rng: &mut StdRng) {
    if board.moments.is_empty() {
        return;
    }
    // Each period is computed from the ledger anew. The seed of the test decides which.
    for period in board.periods.sample(rng, amount(4, usize::MAX)).collect::<Vec<_>>() {
        let of_lanes: Vec<&Moment> = board.batches.iter().map(|_| board.moments.choose(rng).unwrap()).collect();
        let batches: Vec<i64> = of_lanes.iter().enumerate().map(|(lane, moment)| moment.batches[lane]).collect();
        let mut expected = Vec::new();
        for (lane, moment) in (0..).zip(&of_lanes) {
            let entries = moment.entries.get(&period.id).into_iter().flatten();
            expected.extend(entries.filter(|entry| board.player_lanes[&entry.user] == lane).copied());
        }
        let statement = "SELECT $1, * FROM centile.entries_from_ledger($1, $2) ORDER BY user_id";
        let output: Vec<Stored> =
            sqlx::query_as(statement).bind(period.id).bind(&batches).fetch_all(&mut *connection).await.unwrap();
        same(
            &output,
            &stored(board, period, expected),
            &format!("{} on {} as of {batches:?}", period.selector, board.slug),
        );
    }
}

/// Compares the ledger's rows with their lanes and batches.
pub async fn ledger(connection: &mut PgConnection, board: &Board) {
    type Written = (i64, i64, String, Option<i64>, Option<i64>, Option<i64>, DateTime<Utc>, i16, i64);
    let found: Vec<Written> = sqlx::query_as(
        "SELECT id, user_id, kind, points, coalesce(second_number, tiebreak), voids_id, occurred_at, lane, batch
         FROM centile_store.score_transactions WHERE board_id = $1 ORDER BY id",
    )
    .bind(board.id)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    let mut rows = board.oracle.rows.clone();
    rows.sort_by_key(|row| row.id);
    let expected: Vec<Written> = rows
        .into_iter()
        .map(|row| {
            let (points, tiebreak, voids) = match row.act {
                Act::Score { points, tiebreak } => (Some(points), tiebreak, None),
                Act::Void(target) => (None, None, Some(target)),
                _ => (None, None, None),
            };
            let (lane, batch) = board.numbers[&row.id];
            (row.id, row.user, row.act.kind().to_owned(), points, tiebreak, voids, row.at, lane, batch)
        })
        .collect();
    same(&found, &expected, &format!("the ledger of {}", board.slug));
    let statement = "SELECT batch FROM centile_store.board_lanes WHERE board_id = $1 ORDER BY lane";
    let batches: Vec<i64> = sqlx::query_scalar(statement).bind(board.id).fetch_all(connection).await.unwrap();
    same(&batches, &board.batches, &format!("batches of {}", board.slug));
}

/// Returns the expected stored entries, in the order of the users.
fn stored(board: &Board, period: &Period, mut entries: Vec<Entry>) -> Vec<Stored> {
    entries.sort_by_key(|entry| entry.user);
    let rules = board.oracle.rules;
    let row =
        |e: Entry| (period.id, e.user, e.score, board.rank_key(e.score), rules.tie_key(&e), e.reached_at, e.only_zeros);
    entries.into_iter().map(row).collect()
}
