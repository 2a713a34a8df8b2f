//! The boards and operations of `store::property`, run over HTTP and the command line against
//! the same oracle.
//!
//! Two instances serve one database, one with Redis and one without. Each operation and each read
//! goes to a random one.
//! A failure names its seed. `CENTILE_TEST_SEED` repeats it, with `CENTILE_TEST_CASES=1`.

mod board;
pub mod client;
mod reads;

use std::collections::BTreeMap;

use rand::RngExt as _;
use serde_json::json;
use sqlx::PgPool;

use self::{board::Board, client::Client};
use crate::{
    store::property::{Reproducible, seeds},
    support::{
        TestDb, amount,
        random::{Operation, RULES, Source},
        redis_url,
    },
};

/// A user, as HTTP shows it.
#[derive(Debug, Clone)]
struct Player {
    internal_id: i64,
    name: String,
    banned: bool,
}

/// The users of a case, by external id.
type Players = BTreeMap<String, Player>;

#[tokio::test]
async fn every_answer_equals_the_oracle() {
    let db = TestDb::new().await;
    let client = Client::start(&db, &redis_url().await).await;
    let pool = db.pool().await;
    for seed in seeds(RULES) {
        let _named = Reproducible(seed);
        run(&client, &pool, seed).await;
    }
}

async fn run(client: &Client, pool: &PgPool, seed: u64) {
    let mut source = Source::new(seed);
    let mut boards = Vec::new();
    // The quick run has one board, with one or four lanes. Each operation runs on every board.
    let of_one_board = if source.rng.random() { &[1] } else { &[4] };
    for &lanes in amount(&of_one_board[..], &[1, 4]) {
        boards.push(Board::create(client, pool, &mut source, &format!("b{seed}-{lanes}"), lanes).await);
    }
    let mut until_read = 0;
    for _ in 0..amount(7, 16) {
        let operation = source.operation();
        perform(client, pool, &mut source, &mut boards, &operation).await;
        if until_read == 0 {
            until_read = source.rng.random_range(2..6);
            let players = find_players(pool, &source).await;
            for board in &mut boards {
                board.read(client, &players, &mut source.rng, amount(2, 3)).await;
            }
        }
        until_read -= 1;
    }
    let players = find_players(pool, &source).await;
    for board in &mut boards {
        board.read(client, &players, &mut source.rng, amount(4, usize::MAX)).await;
    }
}

/// Reads the users of a case.
async fn find_players(pool: &PgPool, source: &Source) -> Players {
    let rows: Vec<(String, i64, String, bool)> = sqlx::query_as(
        "SELECT user_id, internal_id, user_name, banned_at IS NOT NULL FROM centile.users
             WHERE user_id = ANY ($1) OR user_id = 'nobody'",
    )
    .bind(&source.users)
    .fetch_all(pool)
    .await
    .unwrap();
    let player = |(user, internal_id, name, banned)| (user, Player { internal_id, name, banned });
    rows.into_iter().map(player).collect()
}

/// Runs an operation on all boards, and compares the answers with the oracles.
async fn perform(client: &Client, pool: &PgPool, source: &mut Source, boards: &mut [Board], operation: &Operation) {
    let players = find_players(pool, source).await;
    match operation {
        Operation::Live(events) => {
            for board in boards {
                board.submit(client, pool, source, events).await;
            }
        }
        Operation::Import(events) => {
            for board in boards {
                board.import(client, pool, source, events).await;
            }
        }
        Operation::Void(sent) => {
            for board in boards {
                for number in sent {
                    board.void(client, pool, source, *number).await;
                }
            }
        }
        Operation::Reset(user) => {
            let path = |board: &Board| format!("/v1/boards/{}/scores/{}/reset", board.slug, client::escaped(user));
            for board in boards {
                let (status, answer) = client.post(&path(board), &json!({}), &mut source.rng).await;
                assert_eq!(status, if players.contains_key(user) { 204 } else { 404 }, "{answer}");
                source.instants.extend(board.take_reset(pool, players.get(user)).await);
            }
        }
        Operation::Ban(user) | Operation::Unban(user) => {
            let banned = matches!(operation, Operation::Ban(_));
            let player = players.get(user);
            let path = format!("/v1/users/{}/{}", client::escaped(user), if banned { "ban" } else { "unban" });
            let (status, answer) = client.post(&path, &json!({"reason": "because"}), &mut source.rng).await;
            let Some(player) = player else { return assert_eq!(status, 404, "{answer}") };
            assert_eq!((status, &answer["banned"]), (200, &json!(banned)), "{answer}");
            for board in boards {
                board.take_ban(pool, player, banned).await;
            }
        }
        Operation::Scatter(seed) => {
            for board in boards {
                board.scatter(pool, *seed).await;
            }
        }
        Operation::Rename(user, name) => {
            let path = format!("/v1/users/{}", client::escaped(user));
            let (status, answer) = client.put(&path, &json!({"name": name}), &mut source.rng).await;
            assert_eq!(status, if players.contains_key(user) { 200 } else { 201 }, "{answer}");
            assert_eq!((&answer["user_id"], &answer["name"]), (&json!(user), &json!(name)));
        }
    }
}
