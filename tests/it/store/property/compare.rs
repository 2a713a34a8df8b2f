//! Every read of a board, compared with the oracle.

use std::{collections::HashMap, fmt::Debug};

use chrono::{DateTime, Utc};
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::PgConnection;

use super::{
    Players,
    board::{Board, Moment, Period},
    layout, stored,
};
use crate::support::{
    amount,
    oracle::{Entry, Place, number, percentile, tenth_percentiles},
    random::Source,
};

/// A row of a list: position, rank, user, name, score, time.
type Shown = (i64, i64, String, String, i64, Option<DateTime<Utc>>, Option<i64>);

/// The expected state of one period.
struct Comparison<'a> {
    board: &'a Board,
    period: &'a Period,
    places: Vec<Place>,
    /// External id and name by internal id.
    names: HashMap<i64, (&'a str, &'a str)>,
    rng: &'a mut StdRng,
}

/// Compares what is stored, and all reads of some periods.
pub async fn some(connection: &mut PgConnection, board: &mut Board, players: &Players, source: &mut Source) {
    let mut periods: Vec<Period> = board.periods.sample(&mut source.rng, amount(1, 2)).cloned().collect();
    periods.extend(board.periods.iter().find(|period| period.selector == "all_time").cloned());
    compare(connection, board, players, source, &periods).await;
    let entries = |period: &Period| board.oracle.standings(period.slice).iter().map(|place| place.entry).collect();
    let entries = board.periods.iter().map(|period| (period.id, entries(period))).collect();
    board.moments.push(Moment { batches: board.batches.clone(), entries });
}

/// Compares what is stored, all reads of more periods, earlier states, and the ledger.
pub async fn everything(connection: &mut PgConnection, board: &mut Board, players: &Players, source: &mut Source) {
    let periods: Vec<Period> = board.periods.sample(&mut source.rng, amount(3, 8)).cloned().collect();
    compare(connection, board, players, source, &periods).await;
    stored::past(connection, board, &mut source.rng).await;
    stored::ledger(connection, board).await;
}

async fn compare(
    connection: &mut PgConnection,
    board: &Board,
    players: &Players,
    source: &mut Source,
    periods: &[Period],
) {
    layout::check(connection, board).await;
    stored::check(connection, board, players).await;
    let names: HashMap<i64, (&str, &str)> =
        players.iter().map(|(user, player)| (player.internal_id, (user.as_str(), player.name.as_str()))).collect();
    for period in periods {
        let places = board.oracle.standings(period.slice);
        let (names, rng) = (names.clone(), &mut source.rng);
        let mut comparison = Comparison { board, period, places, names, rng };
        comparison.players(connection).await;
        comparison.pages(connection).await;
        comparison.walk(connection).await;
        comparison.around(connection).await;
        comparison.earlier_keys(connection).await;
        comparison.distribution(connection).await;
    }
}

impl Comparison<'_> {
    fn what(&self, what: &str) -> String {
        let (board, rules) = (&self.board.slug, self.board.oracle.rules);
        format!("{what} of {} on {board} ({rules:?})", self.period.selector)
    }

    /// Returns the rows that a list shows from an index on.
    fn shown(&self, from: usize, limit: usize) -> Vec<Shown> {
        self.places.iter().skip(from).take(limit).map(|place| self.row(place)).collect()
    }

    fn row(&self, place: &Place) -> Shown {
        let (user, name) = self.names[&place.entry.user];
        let entry = place.entry;
        (place.position, place.rank, user.to_owned(), name.to_owned(), entry.score, entry.reached_at, entry.second())
    }

    fn place(&self, user: &str) -> Option<&Place> {
        self.places.iter().find(|place| self.names[&place.entry.user].0 == user)
    }

    /// Compares the ranks of single players, and those of a chosen list.
    async fn players(&mut self, connection: &mut PgConnection) {
        type Chosen = (i64, i64, i64, String, String, i64, Option<DateTime<Utc>>, Option<i64>);
        type Ranked = (
            String,
            Option<i64>,
            Option<i64>,
            Option<i64>,
            Option<f64>,
            Option<i64>,
            Option<DateTime<Utc>>,
            Option<i64>,
        );
        let users: Vec<String> = self.names.values().map(|(user, _)| (*user).to_owned()).collect();
        let one_by_one: Vec<&String> = users.sample(self.rng, amount(12, usize::MAX)).collect();
        let found: Vec<Ranked> = sqlx::query_as(
            "SELECT x.user_id, r.rank, r.position, r.score, r.percentile, r.players, r.reached_at, r.tiebreak
             FROM unnest($2::text[]) WITH ORDINALITY AS x (user_id, n)
             LEFT JOIN LATERAL centile.player_rank($1, x.user_id, $3) r ON true ORDER BY x.n",
        )
        .bind(&self.board.slug)
        .bind(&one_by_one)
        .bind(&self.period.selector)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
        // Compares percentiles in millionths, because the last digits of a quotient may differ.
        let millionths = |percent: f64| format!("{percent:.6}");
        for (user, rank, position, score, percent, players, at, second) in found {
            let expected = self.place(&user).map(|place| (place, millionths(percentile(place, &self.places))));
            assert_eq!(
                (rank, position, score, percent.map(millionths), players, at, second),
                (
                    expected.as_ref().map(|(place, _)| place.rank),
                    expected.as_ref().map(|(place, _)| place.position),
                    expected.as_ref().map(|(place, _)| place.entry.score),
                    expected.as_ref().map(|(_, percent)| percent.clone()),
                    expected.as_ref().map(|_| number(self.places.len())),
                    expected.as_ref().and_then(|(place, _)| place.entry.reached_at),
                    expected.as_ref().and_then(|(place, _)| place.entry.second()),
                ),
                "{}",
                self.what(&format!("player_rank of {user}"))
            );
        }
        let chosen: Vec<String> = users.into_iter().filter(|_| self.rng.random()).collect();
        let found: Vec<Chosen> = sqlx::query_as(
            "SELECT r.position, r.rank, r.worse, r.user_id, r.user_name, r.score, r.reached_at, r.tiebreak
             FROM centile_store.users u CROSS JOIN LATERAL centile_store.player_row($1, u.id) r
             WHERE u.external_id = ANY ($2) ORDER BY r.position",
        )
        .bind(self.period.ranking_id)
        .bind(&chosen)
        .fetch_all(connection)
        .await
        .unwrap();
        let among = self.places.iter().filter(|place| chosen.iter().any(|user| *user == self.row(place).2));
        let expected: Vec<_> = among
            .map(|place| {
                let (position, rank, user, name, score, at, second) = self.row(place);
                (position, rank, place.worse, user, name, score, at, second)
            })
            .collect();
        same(&found, &expected, &self.what("chosen players"));
    }

    async fn pages(&mut self, connection: &mut PgConnection) {
        for _ in 0..3 {
            let skipped = self.rng.random_range(0..self.places.len() + 3);
            let limit = self.rng.random_range(1..20);
            let found: Vec<Shown> = sqlx::query_as("SELECT position, rank, user_id, user_name, score, reached_at, tiebreak FROM centile.page($1, $2, $3, $4)")
                .bind(&self.board.slug)
                .bind(&self.period.selector)
                .bind(number(skipped) + 1)
                .bind(i32::try_from(limit).unwrap())
                .fetch_all(&mut *connection)
                .await
                .unwrap();
            let expected = self.shown(skipped, limit);
            same(&found, &expected, &self.what(&format!("page of {limit} after {skipped} players")));
        }
    }

    /// Follows all pages by cursors, and reads one page after a key that does not exist.
    async fn walk(&mut self, connection: &mut PgConnection) {
        let limit = self.rng.random_range(self.places.len() / 8 + 1..=self.places.len() + 2);
        let mut cursor = [i64::MAX; 3];
        let mut walked = Vec::new();
        loop {
            let (page, next) = self.rows_after(connection, cursor, limit).await;
            assert!(page.len() <= limit, "{}", self.what("walk"));
            walked.extend(page);
            assert!(walked.len() <= self.places.len(), "{}: {walked:?}", self.what("walk without an end"));
            let Some(next) = next else { break };
            cursor = next;
        }
        same(&walked, &self.shown(0, usize::MAX), &self.what(&format!("walk by {limit}")));

        let Some(place) = self.places.choose(self.rng) else { return };
        let ghost = Entry { user: place.entry.user + self.rng.random_range(-1..=1), ..place.entry };
        let cursor = [self.board.rank_key(ghost.score), self.board.oracle.rules.tie_key(&ghost), -ghost.user];
        let (page, _) = self.rows_after(connection, cursor, limit).await;
        let oracle = &self.board.oracle;
        let behind = |place: &&Place| oracle.key(&place.entry) > oracle.key(&ghost);
        let expected: Vec<Shown> = self.places.iter().filter(behind).take(limit).map(|place| self.row(place)).collect();
        same(&page, &expected, &self.what(&format!("rows after {ghost:?}")));
    }

    /// Returns a page and its last key.
    async fn rows_after(
        &self,
        connection: &mut PgConnection,
        [rank_key, tie_key, user_key]: [i64; 3],
        limit: usize,
    ) -> (Vec<Shown>, Option<[i64; 3]>) {
        type Keyed = (i64, i64, String, String, i64, Option<DateTime<Utc>>, Option<i64>, i64, i64, i64);
        let rows: Vec<Keyed> = sqlx::query_as(
            "SELECT position, rank, user_id, user_name, score, reached_at, tiebreak, rank_key, tie_key, -internal_id
             FROM centile_store.rows_after($1, ($2, $3, $4)::centile_store.rank_key, $5)",
        )
        .bind(self.period.ranking_id)
        .bind(rank_key)
        .bind(tie_key)
        .bind(user_key)
        .bind(i32::try_from(limit).unwrap())
        .fetch_all(connection)
        .await
        .unwrap();
        let last = rows.last().map(|row| [row.7, row.8, row.9]);
        (rows.into_iter().map(|row| (row.0, row.1, row.2, row.3, row.4, row.5, row.6)).collect(), last)
    }

    /// Neighbours of the first, the last and some other players; none for players outside the
    /// period.
    async fn around(&mut self, connection: &mut PgConnection) {
        let mut users: Vec<&str> = self.names.values().map(|(user, _)| *user).collect();
        users = users.sample(self.rng, 4).copied().collect();
        users.extend([self.places.first(), self.places.last()].iter().flatten().map(|p| self.names[&p.entry.user].0));
        for user in users {
            let around = *[0, 1, 4, 100, self.rng.random_range(0..=100)].choose(self.rng).unwrap();
            let found: Vec<Shown> = sqlx::query_as("SELECT * FROM centile.players_around($1, $2, $3, $4)")
                .bind(&self.board.slug)
                .bind(user)
                .bind(&self.period.selector)
                .bind(i32::try_from(around).unwrap())
                .fetch_all(&mut *connection)
                .await
                .unwrap();
            let expected = self.place(user).map(|place| {
                let above = usize::try_from(place.position - 1).unwrap();
                self.shown(above.saturating_sub(around), above.min(around) + 1 + around)
            });
            same(&found, &expected.unwrap_or_default(), &self.what(&format!("{around} around {user}")));
        }
    }

    /// Checks current ranks and ranks of earlier keys, which the answer to a score contains. Some of
    /// these players have left since.
    async fn earlier_keys(&mut self, connection: &mut PgConnection) {
        let users: Vec<i64> = self.names.keys().copied().collect();
        for user in users.sample(self.rng, 3) {
            let Some(other) = self.places.choose(self.rng) else { return };
            let was = Entry { user: *user, ..other.entry };
            let (has_bucket_rows, rank, previous): (bool, Option<i64>, Option<i64>) = sqlx::query_as(
                "SELECT (SELECT g.has_bucket_rows FROM centile_store.rankings g WHERE g.id = $1), rank, previous_rank FROM centile_store.rank_change(
                     (SELECT board_id FROM centile_store.periods WHERE ranking_id = $1), $5, $2, $3, $4)",
            )
            .bind(self.period.ranking_id)
            .bind(was.user)
            .bind(self.board.rank_key(was.score))
            .bind(self.board.oracle.rules.tie_key(&was))
            .bind(&self.period.selector)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
            let own = self.places.iter().find(|place| place.entry.user == *user).map(|place| place.rank);
            let expected = (own, Some(self.board.oracle.rank_among_others(&self.places, &was)));
            // Only an index tells the rank without bucket rows.
            let expected = if has_bucket_rows { expected } else { (None, None) };
            assert_eq!((rank, previous), expected, "{}", self.what(&format!("rank_change of {was:?}")));
        }
    }

    /// Ranks of arbitrary scores, percentiles, histogram.
    async fn distribution(&mut self, connection: &mut PgConnection) {
        let mut scores: Vec<i64> = (0..4).map(|_| self.rng.random_range(-8..8)).collect();
        scores.extend([i64::MAX, i64::MIN, self.rng.random_range(-i64::MAX..=i64::MAX)]);
        let held: Vec<i64> = self.places.iter().map(|place| place.entry.score).collect();
        scores.extend(
            held.sample(self.rng, 2).flat_map(|score| [*score, score.saturating_add(1), score.saturating_sub(1)]),
        );
        let ranks: Vec<i64> = sqlx::query_scalar(
            "SELECT centile.rank_of_score($1, s, $2) FROM unnest($3::bigint[]) WITH ORDINALITY AS x (s, n) ORDER BY n",
        )
        .bind(&self.board.slug)
        .bind(&self.period.selector)
        .bind(&scores)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
        let oracle = &self.board.oracle;
        let expected: Vec<i64> = scores.iter().map(|score| oracle.rank_of_score(&self.places, *score)).collect();
        same(&ranks, &expected, &self.what(&format!("ranks of the scores {scores:?}")));

        let found: Vec<(i32, i64)> =
            sqlx::query_as("SELECT percentile, score FROM centile_store.percentiles($1, NULL) ORDER BY percentile")
                .bind(self.period.ranking_id)
                .fetch_all(&mut *connection)
                .await
                .unwrap();
        same(&found, &tenth_percentiles(&self.places), &self.what("percentiles"));

        let bars = self.rng.random_range(1..=40);
        let found: Vec<(i64, i64, i64)> = sqlx::query_as("SELECT * FROM centile_store.histogram($1, NULL, $2)")
            .bind(self.period.ranking_id)
            .bind(bars)
            .fetch_all(connection)
            .await
            .unwrap();
        let found: Vec<(i128, i128, i64)> =
            found.into_iter().map(|(from, to, players)| (from.into(), to.into(), players)).collect();
        let expected = oracle.histogram(&self.places, bars.into());
        same(&found, &expected, &self.what(&format!("histogram of {bars} bars")));
    }
}

/// Compares two lists and shows the first difference.
pub fn same<T: PartialEq + Debug>(found: &[T], expected: &[T], what: &str) {
    let differs = found.iter().zip(expected).position(|(found, expected)| found != expected);
    let place = differs.unwrap_or(found.len().min(expected.len()));
    assert!(
        found == expected,
        "{what}: {} rows, {} expected; at {place} {:?}, expected {:?}",
        found.len(),
        expected.len(),
        found.get(place),
        expected.get(place)
    );
}
