//! The expected layout after a step.

use sqlx::PgConnection;

use crate::support::layout::Step;

/// Rank key, tie key and user key: larger is better.
pub type Key = (i64, i64, i64);

/// The smallest and the largest key. Places without keys at the top have the largest as their
/// bound.
const MIN_KEY: Key = (i64::MIN, i64::MIN, i64::MIN);
const MAX_KEY: Key = (i64::MAX, i64::MAX, i64::MAX);

/// The places of a ranking, lowest first, counted from 0 here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub buckets: Vec<i16>,
    pub bounds: Vec<Key>,
}

impl Places {
    /// Reads the stored places.
    pub async fn read(connection: &mut PgConnection, ranking_id: i64) -> Self {
        let rows: Vec<(i16, i64, i64, i64)> = sqlx::query_as(
            "SELECT u.bucket, u.rank_key, u.tie_key, u.user_key
             FROM centile_store.rankings g
             CROSS JOIN unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
                 AS u (bucket, rank_key, tie_key, user_key, place)
             WHERE g.id = $1 ORDER BY u.place",
        )
        .bind(ranking_id)
        .fetch_all(connection)
        .await
        .unwrap();
        let (buckets, bounds) = rows.into_iter().map(|(bucket, a, b, c)| (bucket, (a, b, c))).unzip();
        Self { buckets, bounds }
    }

    /// Applies a step to a ranking with these keys, lowest first. Returns the number of rows that
    /// it moves.
    pub fn take(&mut self, keys: &[Key], step: Step) -> i32 {
        let index = |place: i32| usize::try_from(place - 1).unwrap();
        match step {
            Step::Move { from, to, rows } => self.shift(keys, index(from), index(to), usize::try_from(rows).unwrap()),
            Step::Reposition { place, beside, is_above } => {
                self.reposition(keys, index(place), index(beside), is_above);
                0
            }
        }
    }

    /// Returns the keys below a place, and those at it.
    fn split<'a>(&self, keys: &'a [Key], place: usize) -> (&'a [Key], &'a [Key]) {
        let (below, rest) = keys.split_at(keys.partition_point(|key| *key < self.bounds[place]));
        let next = self.bounds.get(place + 1);
        (below, &rest[..rest.partition_point(|key| next.is_none_or(|next| key < next))])
    }

    fn shift(&mut self, keys: &[Key], from: usize, to: usize, rows: usize) -> i32 {
        let own = self.split(keys, from).1;
        let rows = rows.min(own.len());
        let upper = from.max(to);
        self.bounds[upper] = match (to > from, rows == own.len()) {
            // All rows move, together with the range.
            (true, true) => self.bounds[from],
            (false, true) => self.bounds.get(from + 1).copied().unwrap_or(MAX_KEY),
            (true, false) => bound_between(own[own.len() - rows - 1], own[own.len() - rows]),
            (false, false) => bound_between(own[rows - 1], own[rows]),
        };
        i32::try_from(rows).unwrap()
    }

    fn reposition(&mut self, keys: &[Key], place: usize, beside: usize, is_above: bool) {
        let bucket = self.buckets.remove(place);
        self.bounds.remove(place);
        self.bounds[0] = MIN_KEY;
        let beside = beside - usize::from(place < beside);
        if is_above {
            let next = self.bounds.get(beside + 1).copied().unwrap_or(MAX_KEY);
            self.buckets.insert(beside + 1, bucket);
            self.bounds.insert(beside + 1, next);
            return;
        }
        let lowest = self.split(keys, beside).1[0];
        // New players who equal the lowest player go below it, unless that would split equals who
        // are all in one bucket.
        let parts = self.bounds[beside].0 == lowest.0;
        self.buckets.insert(beside, bucket);
        self.bounds.insert(beside + 1, if parts { lowest } else { (lowest.0, i64::MIN, i64::MIN) });
    }
}

/// Returns the bound between two keys: below as many equal keys as possible without passing the
/// lower key.
pub fn bound_between(below: Key, above: Key) -> Key {
    match (below.0 == above.0, below.1 == above.1) {
        (false, _) => (above.0, i64::MIN, i64::MIN),
        (true, false) => (above.0, above.1, i64::MIN),
        (true, true) => above,
    }
}
