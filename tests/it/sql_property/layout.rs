//! Rule 4: rows and counts agree, in total, per bucket and per stripe, and every row lies where the layout says.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;

use super::board::Board;

/// A rank key as three numbers, larger is better.
pub type Key = [i64; 3];

/// Checks all rankings of a board.
pub(super) async fn check(connection: &mut PgConnection, board: &Board) {
    let layouts = read(connection, board.periods.iter().map(|period| period.ranking_id).collect()).await;
    for period in &board.periods {
        layouts[&period.ranking_id].check(&format!("{} on {}", period.selector, board.slug));
    }
}

/// Checks one ranking, and gives what it is like.
pub async fn check_ranking(connection: &mut PgConnection, ranking_id: i64, what: &str) -> Layout {
    let mut layouts = read(connection, vec![ranking_id]).await;
    let layout = layouts.remove(&ranking_id).unwrap_or_default();
    layout.check(what);
    layout
}

/// A ranking as it is stored.
#[derive(Debug, Default, PartialEq)]
pub struct Layout {
    /// Lower bound of each stripe → (bucket, number of the stripe in it).
    stripes: BTreeMap<Key, (i16, i64)>,
    /// Bucket and key of each row.
    rows: Vec<(i16, Key)>,
    /// Keys of the entries.
    entries: BTreeSet<Key>,
    /// Sums over lanes, by bucket and number of the stripe.
    stripe_counts: BTreeMap<(i16, i64), i64>,
    /// Sums over lanes, by bucket.
    bucket_counts: BTreeMap<i16, i64>,
}

/// Reads rankings, by their ids.
async fn read(connection: &mut PgConnection, rankings: Vec<i64>) -> BTreeMap<i64, Layout> {
    let mut layouts: BTreeMap<i64, Layout> = BTreeMap::new();
    let stripes: Vec<(i64, i16, i64, i64, i64, i64)> = sqlx::query_as(
        "SELECT ranking_id, bucket, stripe::bigint, rank_key, tie_key, user_key
         FROM centile_store.stripes WHERE ranking_id = ANY ($1)",
    )
    .bind(&rankings)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    for (ranking, bucket, stripe, a, b, c) in stripes {
        layouts.entry(ranking).or_default().stripes.insert([a, b, c], (bucket, stripe));
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
    let stripe_counts: Vec<(i64, i16, i64, i64)> = sqlx::query_as(
        "SELECT s.ranking_id, s.bucket, c.stripe, sum(c.players)::bigint
         FROM centile_store.stripe_counts s, unnest(s.counts) WITH ORDINALITY AS c (players, stripe)
         WHERE s.ranking_id = ANY ($1) GROUP BY s.ranking_id, s.bucket, c.stripe",
    )
    .bind(&rankings)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    for (ranking, bucket, stripe, players) in stripe_counts {
        layouts.entry(ranking).or_default().stripe_counts.insert((bucket, stripe), players);
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
    /// Players of each stripe with its bucket, lowest first.
    pub fn stripes(&self) -> Vec<(i16, i64)> {
        self.stripes.values().map(|at| (at.0, self.stripe_counts[at])).collect()
    }

    /// Players of each bucket.
    pub fn buckets(&self) -> Vec<i64> {
        self.bucket_counts.values().copied().collect()
    }

    /// Lower bounds of the stripes, lowest first.
    pub fn bounds(&self) -> Vec<Key> {
        self.stripes.keys().copied().collect()
    }

    fn check(&self, what: &str) {
        let rows: BTreeSet<Key> = self.rows.iter().map(|(_, key)| *key).collect();
        assert_eq!(rows.len(), self.rows.len(), "no key stands in two buckets: {what}");
        assert_eq!(rows, self.entries, "bucket rows are the entries: {what}");
        assert_eq!(self.stripes.keys().next(), Some(&[i64::MIN; 3]), "every key has a stripe: {what}");

        // Stripes of a bucket are numbered upwards without a gap, and buckets do not interleave.
        let mut before = None;
        for &(bucket, stripe) in self.stripes.values() {
            let follows = match before {
                Some((last, number)) if last == bucket => stripe == number + 1,
                Some((last, _)) => bucket > last && stripe == 1,
                None => stripe == 1,
            };
            assert!(follows, "stripe {stripe} of bucket {bucket} after {before:?}: {what}");
            before = Some((bucket, stripe));
        }

        let mut stripe_counts: BTreeMap<(i16, i64), i64> = self.stripes.values().map(|at| (*at, 0)).collect();
        let mut bucket_counts: BTreeMap<i16, i64> = (0..100).map(|bucket| (bucket, 0)).collect();
        for (bucket, key) in &self.rows {
            let (_, at) = self.stripes.range(..=*key).next_back().expect("a stripe");
            assert_eq!(*bucket, at.0, "bucket of {key:?}: {what}");
            *stripe_counts.get_mut(at).expect("a stripe") += 1;
            *bucket_counts.get_mut(bucket).expect("a bucket") += 1;
        }
        assert_eq!(self.stripe_counts, stripe_counts, "stripe counts: {what}");
        assert_eq!(self.bucket_counts, bucket_counts, "bucket counts: {what}");
    }
}
