//! Random boards and operations, called directly in SQL and compared with the oracle: every answer,
//! rank, page and list.
//!
//! Each case runs on two boards with the same rules, one with one lane and one with four. A failure
//! names its seed: `CENTILE_TEST_SEED` repeats it, with `CENTILE_TEST_CASES=1`. More cases make a
//! longer run.

mod board;
mod compare;
pub mod layout;
mod stored;

pub use compare::same;

use std::{collections::BTreeMap, env, ops::Range, sync::Arc, thread};

use centile::tested::Batches;
use sqlx::{Connection as _, PgConnection};

use self::board::Board;
use crate::support::{
    TestDb, amount,
    oracle::{Event, Oracle},
    random::{KINDS, Operation, RULES, Source, now},
};

/// A user, as SQL shows it.
#[derive(Debug, Clone)]
struct Player {
    internal_id: i64,
    name: String,
    /// Whether every board must refuse the player's scores.
    marked: bool,
}

/// All users, by external id.
type Players = BTreeMap<String, Player>;

/// Returns the seeds to run: `CENTILE_TEST_CASES` of them, from `CENTILE_TEST_SEED` on. The default
/// is a random seed.
pub fn seeds(cases: u64) -> Range<u64> {
    let first = setting("CENTILE_TEST_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    first..first + setting("CENTILE_TEST_CASES").unwrap_or(cases)
}

/// Returns a number from the environment.
fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Prints the seed of a failed case.
pub struct Reproducible(pub u64);

impl Drop for Reproducible {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- again with CENTILE_TEST_SEED={} CENTILE_TEST_CASES=1", self.0);
        }
    }
}

#[tokio::test]
async fn rankings_equal_the_oracle_after_every_operation() {
    let db = TestDb::new().await;
    for seed in seeds(amount(RULES, KINDS)) {
        let _named = Reproducible(seed);
        run(&db, seed).await;
    }
}

/// An event without effect must not even keep a sum within its range.
#[tokio::test]
async fn an_event_before_a_reset_neither_causes_nor_hides_an_overflow() {
    let db = TestDb::new().await;
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let mut source = Source::new(0);
    (source.rules.points_min, source.rules.points_max) = (-i64::MAX, i64::MAX);
    let players = make_players(&mut connection, &source.users).await;
    let mut board = Board::create(&mut connection, &source, &players, "sums", 1, &batches(&db)).await;
    let user = source.users[0].clone();
    let score = |points, at| Event { user: user.clone(), points, tiebreak: None, reason: None, id: None, at };
    let earlier = Some(now());
    let reset_at = board.reset(&mut connection, &user, players[&user].internal_id).await;
    for (dated, events) in [
        (false, vec![score(i64::MAX - 1, None)]),
        (true, vec![score(-5, earlier), score(5, Some(reset_at))]),
        (true, vec![score(i64::MAX, earlier), score(1, Some(reset_at)), score(1, None)]),
        (true, vec![score(-i64::MAX, earlier), score(i64::MAX, earlier), score(-1, Some(reset_at))]),
    ] {
        source.sent.extend(events.clone());
        board.record(&mut connection, &mut source, &players, &events, dated).await;
        compare::everything(&mut connection, &mut board, &players, &mut source).await;
    }
}

fn batches(db: &TestDb) -> Arc<Batches> {
    Arc::new(Batches::new(db.url()).unwrap())
}

async fn run(db: &TestDb, seed: u64) {
    // One connection per case, so that plans are reused, including plans made when tables were
    // smaller.
    let mut connection = PgConnection::connect(db.url()).await.unwrap();
    let mut source = Source::new(seed);
    let mut players = make_players(&mut connection, &source.users).await;
    let (mut boards, batches) = (Vec::new(), batches(db));
    for lanes in [1, 4] {
        let slug = format!("b{seed}-{lanes}");
        boards.push(Board::create(&mut connection, &source, &players, &slug, lanes, &batches).await);
    }
    let mut until_compared = 0;
    for _ in 0..amount(12, 20) {
        if source.one_in(12) {
            for board in &mut boards {
                board.set_clock_back(&mut connection).await;
            }
        }
        let operation = source.operation();
        perform(&mut connection, &mut source, &mut players, &mut boards, &operation).await;
        if until_compared == 0 {
            until_compared = rand::RngExt::random_range(&mut source.rng, 2..8);
            // The quick run compares one of the boards.
            let first = rand::RngExt::random_range(&mut source.rng, 0..boards.len());
            for board in boards.iter_mut().skip(amount(first, 0)).take(amount(1, 2)) {
                compare::some(&mut connection, board, &players, &mut source).await;
            }
        }
        until_compared -= 1;
    }
    for board in &mut boards {
        compare::everything(&mut connection, board, &players, &mut source).await;
    }
    connection.close().await.unwrap();
}

async fn make_players(connection: &mut PgConnection, users: &[String]) -> Players {
    sqlx::query("SELECT centile.ensure_users($1), centile.ensure_ledger_months()")
        .bind(users)
        .execute(&mut *connection)
        .await
        .unwrap();
    let rows: Vec<(String, i64, String)> =
        sqlx::query_as("SELECT user_id, internal_id, user_name FROM centile.users WHERE user_id = ANY ($1)")
            .bind(users)
            .fetch_all(connection)
            .await
            .unwrap();
    let player = |(user, internal_id, name)| (user, Player { internal_id, name, marked: false });
    rows.into_iter().map(player).collect()
}

/// Runs an operation on all boards, and compares the answers with the oracles.
async fn perform(
    connection: &mut PgConnection,
    source: &mut Source,
    players: &mut Players,
    boards: &mut [Board],
    operation: &Operation,
) {
    // A ban marks the user first, an unban clears the mark last.
    if let Operation::Ban(user) = operation {
        mark(connection, players, user, true).await;
    }
    for board in boards.iter_mut() {
        match operation {
            Operation::Live(events) => board.record(connection, source, players, events, false).await,
            Operation::Import(events) => board.record(connection, source, players, events, true).await,
            Operation::Ban(user) => board.ban(connection, user, players[user].internal_id, true).await,
            Operation::Unban(user) => board.ban(connection, user, players[user].internal_id, false).await,
            Operation::Void(sent) => {
                for number in sent {
                    board.void(connection, *number).await;
                }
            }
            Operation::Reset(user) => {
                let at = board.reset(connection, user, players[user].internal_id).await;
                source.instants.push(at);
            }
            Operation::Scatter(seed) => board.scatter(connection, *seed).await,
            Operation::Rename(..) => {}
        }
    }
    match operation {
        Operation::Unban(user) => mark(connection, players, user, false).await,
        Operation::Rename(user, name) => {
            let statement = "SELECT centile.rename_users(ARRAY[$1], ARRAY[$2])";
            let renamed: i32 = sqlx::query_scalar(statement).bind(user).bind(name).fetch_one(connection).await.unwrap();
            let player = players.get_mut(user).unwrap();
            assert_eq!(renamed == 1, player.name != *name, "renames to {name}");
            player.name.clone_from(name);
        }
        _ => {}
    }
}

async fn mark(connection: &mut PgConnection, players: &mut Players, user: &str, banned: bool) {
    let statement = "SELECT centile.mark_banned($1, $2)";
    sqlx::query(statement).bind(user).bind(banned).execute(connection).await.unwrap();
    players.get_mut(user).unwrap().marked = banned;
}
