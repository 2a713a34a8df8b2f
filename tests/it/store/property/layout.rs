//! Invariant 4 of ARCHITECTURE.md: rows and counts agree, in total and per bucket. Every row is in
//! the bucket of its key.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;

use super::board::Board;
use crate::support::audit;

/// A rank key as three numbers, larger is better.
pub type Key = [i64; 3];

/// Checks all rankings of a board.
pub(super) async fn check(connection: &mut PgConnection, board: &Board) {
    audit::apply_on(connection).await;
    let layouts = read(connection, board.periods.iter().map(|period| period.ranking_id).collect()).await;
    for period in &board.periods {
        layouts[&period.ranking_id].check(&format!("{} on {}", period.selector, board.slug));
    }
}

/// Checks one ranking, and returns its layout.
pub async fn check_ranking(connection: &mut PgConnection, ranking_id: i64, what: &str) -> Layout {
    audit::apply_on(connection).await;
    let mut layouts = read(connection, vec![ranking_id]).await;
    let layout = layouts.remove(&ranking_id).unwrap_or_default();
    layout.check(what);
    layout
}

/// A stored ranking.
#[derive(Debug, Default, PartialEq)]
pub struct Layout {
    /// Bucket and lower bound of each place, lowest first.
    places: Vec<(i16, Key)>,
    /// Bucket and key of each row.
    rows: Vec<(i16, Key)>,
    /// Keys of the entries.
    entries: BTreeSet<Key>,
    /// Sums over lanes, by bucket.
    bucket_counts: BTreeMap<i16, i64>,
}

/// Reads rankings, by their ids.
async fn read(connection: &mut PgConnection, rankings: Vec<i64>) -> BTreeMap<i64, Layout> {
    let mut layouts: BTreeMap<i64, Layout> = BTreeMap::new();
    let places: Vec<(i64, i16, i64, i64, i64)> = sqlx::query_as(
        "SELECT g.id, u.bucket, u.rank_key, u.tie_key, u.user_key
         FROM centile_store.rankings g
         CROSS JOIN unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
             AS u (bucket, rank_key, tie_key, user_key, place)
         WHERE g.id = ANY ($1) ORDER BY g.id, u.place",
    )
    .bind(&rankings)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    for (ranking, bucket, a, b, c) in places {
        layouts.entry(ranking).or_default().places.push((bucket, [a, b, c]));
    }
    let rows: Vec<(i64, i16, i64, i64, i64)> = sqlx::query_as(
        "SELECT ranking_id, bucket, rank_key, tie_key, user_key
         FROM centile_store.leaderboard_bucket WHERE ranking_id = ANY ($1)",
    )
    .bind(&rankings)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    for (ranking, bucket, a, b, c) in rows {
        layouts.entry(ranking).or_default().rows.push((bucket, [a, b, c]));
    }
    let entries: Vec<(i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT ranking_id, rank_key, tie_key, -user_id FROM centile_store.leaderboard WHERE ranking_id = ANY ($1)",
    )
    .bind(&rankings)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    for (ranking, a, b, c) in entries {
        layouts.entry(ranking).or_default().entries.insert([a, b, c]);
    }
    let bucket_counts: Vec<(i64, i16, i64)> = sqlx::query_as(
        "SELECT b.ranking_id, (c.place - 1)::smallint, sum(c.players)::bigint
         FROM centile_store.bucket_counts b, unnest(b.counts) WITH ORDINALITY AS c (players, place)
         WHERE b.ranking_id = ANY ($1) GROUP BY b.ranking_id, c.place",
    )
    .bind(&rankings)
    .fetch_all(connection)
    .await
    .unwrap();
    for (ranking, bucket, players) in bucket_counts {
        layouts.entry(ranking).or_default().bucket_counts.insert(bucket, players);
    }
    layouts
}

impl Layout {
    /// Returns the number of players in each place, lowest first.
    pub fn players(&self) -> Vec<i64> {
        self.places.iter().map(|(bucket, _)| self.bucket_counts[bucket]).collect()
    }

    /// Returns the numbers of the buckets with players, lowest first.
    pub fn occupied(&self) -> Vec<i16> {
        self.places.iter().map(|(bucket, _)| *bucket).filter(|bucket| self.bucket_counts[bucket] > 0).collect()
    }

    /// Returns the lower bounds of the places that have a range, lowest first.
    pub fn bounds(&self) -> Vec<Key> {
        let distinct: BTreeSet<Key> = self.places.iter().map(|(_, bound)| *bound).collect();
        distinct.into_iter().filter(|bound| *bound != [i64::MAX; 3]).collect()
    }

    fn check(&self, what: &str) {
        if self.places[0].0 == 100 {
            assert!(self.rows.is_empty() && self.bucket_counts.is_empty(), "a ranking without bucket rows: {what}");
            return;
        }
        let rows: BTreeSet<Key> = self.rows.iter().map(|(_, key)| *key).collect();
        assert_eq!(rows.len(), self.rows.len(), "no key may be in two buckets: {what}");
        assert_eq!(rows, self.entries, "bucket rows must match the entries: {what}");
        assert_eq!(self.places[0].1, [i64::MIN; 3], "the lowest bound must be the smallest key: {what}");
        assert!(self.places.is_sorted_by_key(|(_, bound)| *bound), "bounds must ascend: {what}");
        let numbers: BTreeSet<i16> = self.places.iter().map(|(bucket, _)| *bucket).collect();
        assert!(numbers.into_iter().eq(0..100), "every bucket must have one place: {what}");

        let mut bucket_counts: BTreeMap<i16, i64> = (0..100).map(|bucket| (bucket, 0)).collect();
        for (bucket, key) in &self.rows {
            let (of_key, _) = self.places.iter().rfind(|(_, bound)| bound <= key).expect("a place");
            assert_eq!(bucket, of_key, "bucket of {key:?}: {what}");
            *bucket_counts.get_mut(bucket).expect("a bucket") += 1;
        }
        assert_eq!(self.bucket_counts, bucket_counts, "bucket counts: {what}");
    }
}
