//! Layouts of rankings: the bucket of every key, for writers.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

/// Buckets of a ranking, and bucket tables.
pub(crate) const PLACES: usize = 100;

/// Rank key, tie key and user key, which order the players.
pub(crate) type KeyTuple = (i64, i64, i64);

/// The buckets of a ranking in their order, lowest first.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Time of creation. Two layouts of a ranking never have the same time, even if the database is
    /// restored between them.
    at: DateTime<Utc>,
    /// Number of the bucket at each place in the order.
    buckets: Vec<i16>,
    /// Lower bound of the bucket at each place.
    bounds: Vec<KeyTuple>,
}

impl Layout {
    /// Creates a layout. `None` unless its buckets cover every key.
    ///
    /// Leaves out buckets that begin at the greatest key. No player has it, and most rankings have
    /// many of these buckets.
    pub(crate) fn new(at: DateTime<Utc>, buckets: &[i16], bounds: &[KeyTuple]) -> Option<Self> {
        let used = bounds.partition_point(|bound| *bound < (i64::MAX, i64::MAX, i64::MAX));
        let is_whole = buckets.len() == bounds.len() && bounds.first() == Some(&(i64::MIN, i64::MIN, i64::MIN));
        is_whole.then(|| Self { at, buckets: buckets[..used].to_vec(), bounds: bounds[..used].to_vec() })
    }

    /// Returns the bucket of a key: the last one whose lower bound is not above the key.
    pub(crate) fn bucket_of(&self, key: KeyTuple) -> i16 {
        let place = self.bounds.partition_point(|bound| *bound <= key);
        self.buckets[place.saturating_sub(1)]
    }
}

/// Layouts of rankings, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Layouts(BTreeMap<i64, Layout>);

impl Layouts {
    /// Returns the ids of the rankings in ascending order, with the times of their layouts.
    pub(crate) fn known(&self) -> (Vec<i64>, Vec<DateTime<Utc>>) {
        self.0.iter().map(|(ranking_id, layout)| (*ranking_id, layout.at)).unzip()
    }

    /// Returns the number of rankings.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the layout of a ranking.
    pub(crate) fn get(&self, ranking_id: i64) -> Option<&Layout> {
        self.0.get(&ranking_id)
    }

    /// Replaces the layout of a ranking.
    pub(crate) fn put(&mut self, ranking_id: i64, layout: Layout) {
        self.0.insert(ranking_id, layout);
    }

    /// Removes all rankings that the predicate rejects.
    pub(crate) fn keep_only(&mut self, rankings: impl Fn(i64) -> bool) {
        self.0.retain(|ranking_id, _| rankings(*ranking_id));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop there")]

    use super::*;

    #[test]
    fn a_key_belongs_to_the_last_bucket_whose_bound_is_not_above_it() {
        let least = (i64::MIN, i64::MIN, i64::MIN);
        let greatest = (i64::MAX, i64::MAX, i64::MAX);
        let bounds = vec![least, (5, i64::MIN, i64::MIN), (5, 7, -3), (5, 7, -3), greatest];
        let layout = Layout::new(DateTime::UNIX_EPOCH, &[4, 3, 2, 1, 0], &bounds).unwrap();
        // A user key is the negative of an id, so no key is the greatest.
        let highest = (i64::MAX, i64::MAX, -1);
        let keys = [least, (4, i64::MAX, i64::MAX), (5, 7, -4), (5, 7, -3), (i64::MAX, 0, 0), highest];
        assert_eq!(keys.map(|key| layout.bucket_of(key)), [4, 4, 3, 1, 1, 1]);
        assert_eq!(layout.bounds.len(), 4);
    }

    #[test]
    fn a_layout_without_a_bucket_for_the_least_key_is_none() {
        assert!(Layout::new(DateTime::UNIX_EPOCH, &[0], &[(0, 0, 0)]).is_none());
        assert!(Layout::new(DateTime::UNIX_EPOCH, &[], &[]).is_none());
    }
}
