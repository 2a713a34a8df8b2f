//! The players of a ranking as a plain sorted list, and comparisons of every read with it.

use std::cmp::Reverse;

use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::PgConnection;

use super::expected::Key;
use crate::store::property::same;

/// A player with its expected rank and position.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Player {
    id: i64,
    user: String,
    score: i64,
    key: Key,
    position: i64,
    rank: i64,
    worse: i64,
}

/// All players of a ranking, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sorted {
    ranking_id: i64,
    is_shared: bool,
    players: Vec<Player>,
}

/// Position, rank, user and score, which most reads return.
type Row = (i64, i64, String, i64);

impl Sorted {
    /// Reads the entries and sorts them.
    pub async fn read(connection: &mut PgConnection, ranking_id: i64, is_shared: bool, ascending: bool) -> Self {
        let rows: Vec<(i64, String, i64, i64, i64)> = sqlx::query_as(
            "SELECT l.user_id, u.external_id, l.score, l.rank_key, l.tie_key
             FROM centile_store.leaderboard l JOIN centile_store.users u ON u.id = l.user_id WHERE l.ranking_id = $1",
        )
        .bind(ranking_id)
        .fetch_all(connection)
        .await
        .unwrap();
        let mut players: Vec<Player> = rows
            .into_iter()
            .map(|(id, user, score, rank_key, tie_key)| {
                assert_eq!(rank_key, if ascending { -score } else { score }, "{user}");
                Player { id, user, score, key: (rank_key, tie_key, -id), position: 0, rank: 0, worse: 0 }
            })
            .collect();
        players.sort_unstable_by_key(|player| Reverse(player.key));
        let scores: Vec<i64> = players.iter().map(|player| player.key.0).collect();
        let number = |count: usize| i64::try_from(count).unwrap();
        for (index, player) in players.iter_mut().enumerate() {
            // Equals that share a rank are neither better nor worse.
            let better = scores.iter().filter(|score| **score > player.key.0).count();
            let worse = scores.iter().filter(|score| **score < player.key.0).count();
            player.position = number(index) + 1;
            player.rank = if is_shared { number(better) + 1 } else { player.position };
            player.worse = if is_shared { number(worse) } else { number(scores.len()) - player.position };
        }
        Self { ranking_id, is_shared, players }
    }

    /// Returns all keys, lowest first.
    pub fn keys(&self) -> Vec<Key> {
        self.players.iter().rev().map(|player| player.key).collect()
    }

    /// Compares all reads with the list.
    pub async fn check(&self, connection: &mut PgConnection, rng: &mut StdRng, what: &str) {
        self.check_players(connection, what).await;
        self.check_standings(connection, what).await;
        self.check_neighbours(connection, rng.random_range(1..=9), what).await;
        self.check_pages(connection, *[1, 3, 7, 20, 1_000].choose(rng).unwrap(), what).await;
        self.check_counts(connection, what).await;
    }

    fn ids(&self) -> Vec<i64> {
        self.players.iter().map(|player| player.id).collect()
    }

    fn row(player: &Player) -> Row {
        (player.position, player.rank, player.user.clone(), player.score)
    }

    /// Ranks as reports and exports count them.
    async fn check_players(&self, connection: &mut PgConnection, what: &str) {
        let found: Vec<(i64, i64, i64, i64)> = sqlx::query_as(
            "SELECT r.position, r.rank, r.worse, r.score FROM unnest($2::bigint[]) WITH ORDINALITY AS u (id, n)
             CROSS JOIN LATERAL centile_store.player_row($1, u.id) r ORDER BY u.n",
        )
        .bind(self.ranking_id)
        .bind(self.ids())
        .fetch_all(connection)
        .await
        .unwrap();
        let row = |player: &Player| (player.position, player.rank, player.worse, player.score);
        same(&found, &self.players.iter().map(row).collect::<Vec<_>>(), &format!("players {what}"));
    }

    /// Ranks as the service counts them, from bucket counts and rows of one bucket.
    async fn check_standings(&self, connection: &mut PgConnection, what: &str) {
        type Found = (i32, Vec<i64>, bool, Option<Vec<i64>>, Vec<i64>, i64);
        let found: Vec<Found> = sqlx::query_as(
            "SELECT s.place, s.counted, s.from_below, s.beside_equals,
                    first_value(s.counts) OVER (ORDER BY s.n), s.score
             FROM centile_store.rankings g
             JOIN centile_store.periods p ON p.ranking_id = g.id
             CROSS JOIN LATERAL centile_store.bucket_standings(p.board_id, p.id, g.id, NULL, NULL, $2, NULL, NULL) s
             WHERE g.id = $1 ORDER BY s.n",
        )
        .bind(self.ranking_id)
        .bind(self.players.iter().map(|player| player.user.clone()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
        .unwrap();
        let found: Vec<_> = found
            .into_iter()
            .map(|(place, counted, from_below, beside_equals, counts, score)| {
                let place = usize::try_from(place).unwrap();
                let higher: i64 = counts[place..].iter().sum();
                let above = |n: usize| higher + if from_below { counts[place - 1] - counted[n] } else { counted[n] };
                let (better, not_worse) = match (self.is_shared, beside_equals) {
                    (false, None) => (above(1), above(1) + 1),
                    (true, None) => (above(0), above(2)),
                    (true, Some(counted)) => (counted[0], counted[1]),
                    (false, Some(_)) => panic!("equals must not be counted here"),
                };
                (above(1) + 1, better + 1, counts.iter().sum::<i64>() - not_worse, score)
            })
            .collect();
        let row = |player: &Player| (player.position, player.rank, player.worse, player.score);
        same(&found, &self.players.iter().map(row).collect::<Vec<_>>(), &format!("standings {what}"));
    }

    async fn check_neighbours(&self, connection: &mut PgConnection, around: usize, what: &str) {
        let found: Vec<Row> = sqlx::query_as(
            "SELECT r.position, r.rank, r.user_id, r.score FROM unnest($2::bigint[]) WITH ORDINALITY AS u (id, n)
             CROSS JOIN LATERAL centile_store.rows_around($1, u.id, $3) r ORDER BY u.n, r.position",
        )
        .bind(self.ranking_id)
        .bind(self.ids())
        .bind(i32::try_from(around).unwrap())
        .fetch_all(connection)
        .await
        .unwrap();
        let near = |index: usize| index.saturating_sub(around)..(index + around + 1).min(self.players.len());
        let expected: Vec<Row> =
            (0..self.players.len()).flat_map(near).map(|index| Self::row(&self.players[index])).collect();
        same(&found, &expected, &format!("{around} neighbours {what}"));
    }

    /// Pages of `limit` rows in sequence, and one beyond the last.
    async fn check_pages(&self, connection: &mut PgConnection, limit: i64, what: &str) {
        let players = i64::try_from(self.players.len()).unwrap();
        let found: Vec<Row> = sqlx::query_as(
            "SELECT r.position, r.rank, r.user_id, r.score FROM generate_series(1, $2 + $3, $3) AS p (first)
             CROSS JOIN LATERAL centile_store.page_rows($1, p.first, $3::integer) r ORDER BY p.first, r.position",
        )
        .bind(self.ranking_id)
        .bind(players)
        .bind(limit)
        .fetch_all(connection)
        .await
        .unwrap();
        same(&found, &self.players.iter().map(Self::row).collect::<Vec<_>>(), &format!("pages of {limit} {what}"));
    }

    /// Counts of players at and above the existing scores and the scores next to them, which may
    /// have no players.
    async fn check_counts(&self, connection: &mut PgConnection, what: &str) {
        let mut scores: Vec<i64> = self.players.iter().map(|player| player.key.0).collect();
        scores.dedup();
        scores.extend([i64::MIN + 1, -1, 0, 1, i64::MAX]);
        scores.extend(scores.clone().iter().flat_map(|score| [score.saturating_sub(1), score.saturating_add(1)]));
        scores.sort_unstable();
        scores.dedup();
        let found: Vec<(i64, i64, i64)> = sqlx::query_as(
            "SELECT s.score, centile_store.count_above($1, centile_store.highest_key(s.score)),
                    centile_store.count_above($1, centile_store.lowest_key(s.score))
             FROM unnest($2::bigint[]) AS s (score) ORDER BY s.score",
        )
        .bind(self.ranking_id)
        .bind(&scores)
        .fetch_all(connection)
        .await
        .unwrap();
        let count = |is_above: &dyn Fn(i64) -> bool| {
            i64::try_from(self.players.iter().filter(|player| is_above(player.key.0)).count()).unwrap()
        };
        let expected: Vec<(i64, i64, i64)> = scores
            .iter()
            .map(|&score| (score, count(&|other| other > score), count(&|other| other >= score)))
            .collect();
        same(&found, &expected, &format!("counts above scores {what}"));
    }
}
