//! Boards of the import tests, and their standings.

use serde_json::Value;
use sqlx::{FromRow, query_as, query_scalar};

use crate::support::{TestDb, audit, centile};

/// A player's standing in one period.
#[derive(Debug, PartialEq, Eq, FromRow)]
pub struct Standing {
    kind: String,
    label: String,
    user_id: String,
    score: i64,
    rank_key: i64,
    tie_key: i64,
}

/// Creates a board with `centile board create`.
pub fn make_board(db: &TestDb, slug: &str, flags: &[&str]) {
    let output = centile().args(["board", "create", slug]).args(flags).env("DATABASE_URL", db.url()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Returns all standings of a board's periods.
pub async fn standings(db: &TestDb, board: &str) -> Vec<Standing> {
    query_as(
        "SELECT p.kind, p.label, u.external_id AS user_id, l.score, l.rank_key, l.tie_key
         FROM centile.periods p
         JOIN centile_store.leaderboard l ON l.ranking_id = p.ranking_id
         JOIN centile_store.users u ON u.id = l.user_id
         WHERE p.board = $1
         ORDER BY p.kind, p.label, u.external_id",
    )
    .bind(board)
    .fetch_all(&db.pool().await)
    .await
    .unwrap()
}

/// Fails unless two boards have the same standings in the same periods.
#[track_caller]
pub fn same_standings<'a>(db: &'a TestDb, one: &'a str, other: &'a str) -> impl Future<Output = ()> + use<'a> {
    let caller = std::panic::Location::caller();
    async move {
        let (ones, others) = (standings(db, one).await, standings(db, other).await);
        assert!(!ones.is_empty(), "{caller}: {one} has no standings");
        let differ = ones.iter().zip(&others).find(|(one, other)| one != other);
        assert!(ones.len() == others.len() && differ.is_none(), "{caller}: {one} and {other}: {differ:?}");
    }
}

/// Returns the number of rows in a board's ledger.
pub async fn ledger_rows(db: &TestDb, board: &str) -> i64 {
    query_scalar(
        "SELECT count(*) FROM centile_store.score_transactions t
         JOIN centile_store.boards b ON b.id = t.board_id WHERE b.slug = $1",
    )
    .bind(board)
    .fetch_one(&db.pool().await)
    .await
    .unwrap()
}

/// Returns the names of all players, by id.
pub async fn names(db: &TestDb) -> Value {
    let names = "SELECT coalesce(jsonb_object_agg(external_id, name), '{}') FROM centile_store.users";
    query_scalar(names).fetch_one(&db.pool().await).await.unwrap()
}

/// Fails unless the bucket counts, the bucket tables and `leaderboard` of each ranking agree on the
/// players. Also, each bucket table must have as many rows as its count, and no bucket may be too
/// large.
pub async fn whole(db: &TestDb, board: &str) {
    audit::apply(&db.pool().await).await;
    let rankings: Vec<(i64, i64, i64, i64, i64)> = query_as(
        "SELECT (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p.ranking_id),
                (SELECT count(*) FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = p.ranking_id),
                (SELECT sum(n)::bigint FROM centile_store.bucket_counts c, unnest(c.counts) AS n WHERE c.ranking_id = p.ranking_id),
                (SELECT sum(least(c.players, r.rows))::bigint
                 FROM (SELECT x.place - 1 AS bucket, sum(x.n) AS players
                       FROM centile_store.bucket_counts c, unnest(c.counts) WITH ORDINALITY AS x (n, place)
                       WHERE c.ranking_id = p.ranking_id GROUP BY x.place) c
                 JOIN (SELECT b.bucket, count(*) AS rows FROM centile_store.leaderboard_bucket b
                       WHERE b.ranking_id = p.ranking_id GROUP BY b.bucket) r ON r.bucket = c.bucket),
                (SELECT max(n)::bigint FROM unnest(centile_store.bucket_totals(p.ranking_id)) AS n)
         FROM centile.periods p WHERE p.board = $1",
    )
    .bind(board)
    .fetch_all(&db.pool().await)
    .await
    .unwrap();
    assert!(!rankings.is_empty(), "{board} has no ranking");
    for (players, rows, in_counts, in_both, largest) in rankings {
        assert_eq!([rows, in_counts, in_both], [players; 3], "{board}");
        assert!(largest <= 1_300, "{board}: a bucket of {largest} is large");
    }
}
