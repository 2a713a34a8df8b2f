//! A board's ledger, and its rankings at any version, replayed from that ledger alone.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use chrono::{DateTime, Utc};
use sha2::{Digest as _, Sha256};
use sqlx::PgPool;

use super::{
    is_cluster,
    oracle::{Act, Entry, Mode, Oracle, Row, Rules, Slice, Ties},
};

/// A row of the ledger with its lane, batch and reason.
#[derive(Debug, Clone)]
pub struct LedgerRow {
    pub row: Row,
    pub lane: usize,
    pub batch: i64,
    pub reason: Option<String>,
}

/// The ledger of a board.
#[derive(Debug)]
pub struct Ledger {
    pub slug: String,
    pub rules: Rules,
    /// By id.
    pub rows: Vec<LedgerRow>,
    /// Of each lane, by batch.
    lanes: Vec<Vec<LedgerRow>>,
    /// External ids of the players, and the reverse map.
    pub names: HashMap<i64, String>,
    pub ids: HashMap<String, i64>,
    /// The last batch of each lane, by its digest in versions, of every possible state.
    pub versions: HashMap<String, Vec<i64>>,
    /// Every period by its name.
    pub periods: HashMap<String, Slice>,
}

type StoredPeriod = (String, Option<DateTime<Utc>>, Option<DateTime<Utc>>);
type StoredRow = (i64, i64, String, Option<i64>, Option<i64>, Option<i64>, Option<String>, DateTime<Utc>, i16, i64);

impl Ledger {
    /// Reads a board's ledger.
    pub async fn read(pool: &PgPool, slug: &str) -> Self {
        type Stored = (i32, String, String, String, i16, i64, i64, Option<String>, Option<String>);
        let (id, mode, order, ties, lanes, points_min, points_max, tiebreak_order, tiebreak_sum): Stored =
            sqlx::query_as(
                "SELECT board_id, mode, score_order, ties, lanes, points_min, points_max, tiebreak_order, tiebreak_sum
                 FROM centile.boards WHERE slug = $1",
            )
            .bind(slug)
            .fetch_one(pool)
            .await
            .expect("the board");
        let rules = Rules {
            mode: match mode.as_str() {
                "sum" => Mode::Sum,
                "best" => Mode::Best,
                _ => Mode::Latest,
            },
            ascending: order == "asc",
            // The load sends no tiebreaks to other boards.
            ties: match ties.as_str() {
                "shared" => Ties::Shared,
                "second" => Ties::Second {
                    ascending: tiebreak_order.as_deref() == Some("asc"),
                    replaced: tiebreak_sum.as_deref() == Some("replaced"),
                },
                _ => Ties::First,
            },
            points_min,
            points_max,
        };
        let stored: Vec<StoredRow> = sqlx::query_as(
            "SELECT id, user_id, kind, points, coalesce(second_number, tiebreak), voids_id, reason, occurred_at, lane, batch
             FROM centile_store.score_transactions WHERE board_id = $1 ORDER BY id",
        )
        .bind(id)
        .fetch_all(pool)
        .await
        .expect("the ledger");
        let rows: Vec<LedgerRow> = stored.into_iter().map(ledger_row).collect();
        let mut by_lane = vec![Vec::new(); usize::from(lanes.unsigned_abs())];
        for row in &rows {
            by_lane[row.lane].push(row.clone());
        }
        for lane in &mut by_lane {
            lane.sort_by_key(|row| (row.batch, row.row.id));
        }
        let users: Vec<(i64, String)> =
            sqlx::query_as("SELECT id, external_id FROM centile_store.users").fetch_all(pool).await.expect("the users");
        let periods: Vec<StoredPeriod> = sqlx::query_as(
            "SELECT CASE kind WHEN 'all_time' THEN kind ELSE kind || ':' || label END,
                    nullif(starts_at, '-infinity'), nullif(ends_at, 'infinity')
             FROM centile_store.periods WHERE board_id = centile_store.owner_of($1)",
        )
        .bind(id)
        .fetch_all(pool)
        .await
        .expect("the periods");
        let batches: Vec<(i16, i64)> = sqlx::query_as(
            "SELECT lane, batch FROM centile_store.batch_log WHERE board_id = centile_store.owner_of($1) ORDER BY written_at, lane, batch",
        )
        .bind(id)
        .fetch_all(pool)
        .await
        .expect("the batches");
        Self {
            versions: versions(by_lane.len(), &batches),
            slug: slug.to_owned(),
            rules,
            rows,
            lanes: by_lane,
            ids: users.iter().map(|(id, name)| (name.clone(), *id)).collect(),
            names: users.into_iter().collect(),
            periods: periods
                .into_iter()
                .map(|(name, starts_at, ends_at)| (name, Slice { starts_at, ends_at }))
                .collect(),
        }
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Returns each player's rows in order.
    pub fn of_player(&self) -> HashMap<i64, Vec<&LedgerRow>> {
        let mut players: HashMap<i64, Vec<&LedgerRow>> = HashMap::new();
        for row in &self.rows {
            players.entry(row.row.user).or_default().push(row);
        }
        players
    }
}

/// Returns the digests of all vectors of last batches that may have been visible at one moment.
/// Batches are in the order of their write times; the last one of a lane is invisible until its
/// commit. On a cluster each server has its own snapshot, so a lane may be some batches behind.
fn versions(lanes: usize, batches: &[(i16, i64)]) -> HashMap<String, Vec<i64>> {
    let visible = if is_cluster() { 10 } else { 2 };
    let mut states = BTreeSet::from([vec![0; lanes]]);
    let mut last = vec![vec![0; visible]; lanes];
    for &(lane, batch) in batches {
        let changed = usize::from(lane.unsigned_abs());
        last[changed].rotate_left(1);
        last[changed][visible - 1] = batch;
        // Each vector with the new batch; those without it are known.
        let mut vectors = vec![Vec::with_capacity(lanes)];
        for (lane, seen) in last.iter().enumerate() {
            let seen = if lane == changed { &seen[visible - 1..] } else { &seen[..] };
            vectors =
                vectors.iter().flat_map(|vector| seen.iter().map(|batch| [&vector[..], &[*batch]].concat())).collect();
        }
        states.extend(vectors);
    }
    states.into_iter().map(|state| (digest(&state), state)).collect()
}

fn digest(batches: &[i64]) -> String {
    let text: Vec<String> = batches.iter().map(ToString::to_string).collect();
    let digest = Sha256::digest(text.join("-"));
    format!("{:016x}", u64::from_be_bytes(digest[..8].try_into().expect("eight bytes")))
}

fn ledger_row(stored: StoredRow) -> LedgerRow {
    let (id, user, kind, points, tiebreak, voids, reason, at, lane, batch) = stored;
    let act = match kind.as_str() {
        "score" => Act::Score { points: points.expect("points"), tiebreak },
        "void" => Act::Void(voids.expect("a target")),
        "reset" => Act::Reset,
        "ban" => Act::Ban,
        _ => Act::Unban,
    };
    LedgerRow { row: Row { id, user, act, at }, lane: usize::from(lane.unsigned_abs()), batch, reason }
}

/// The sort key of players, best first: score, second number, time, internal id.
pub type Key = (Reverse<i128>, Reverse<i64>, Option<DateTime<Utc>>, i64);

/// A ranking at one version, which can advance to later ones.
#[derive(Debug)]
pub struct View<'a> {
    pub ledger: &'a Ledger,
    pub slice: Slice,
    /// Number of applied rows of each lane.
    taken: Vec<usize>,
    players: HashMap<i64, Oracle>,
    pub entries: HashMap<i64, Entry>,
    pub order: Vec<Key>,
}

impl<'a> View<'a> {
    /// Creates the ranking before the first act.
    pub fn new(ledger: &'a Ledger, slice: Slice) -> Self {
        let taken = vec![0; ledger.lanes()];
        Self { ledger, slice, taken, players: HashMap::new(), entries: HashMap::new(), order: Vec::new() }
    }

    /// Advances to a version, given as the last batch of each lane. If a lane goes back, as between the
    /// snapshots of a cluster, it starts from the beginning.
    pub fn advance(&mut self, batches: &[i64]) {
        let mut lanes = batches.iter().zip(&self.taken).zip(&self.ledger.lanes);
        if lanes.any(|((batch, taken), rows)| taken.checked_sub(1).is_some_and(|last| rows[last].batch > *batch)) {
            *self = Self::new(self.ledger, self.slice);
        }
        let mut touched = BTreeSet::new();
        for (lane, batch) in batches.iter().enumerate() {
            let rows = &self.ledger.lanes[lane];
            while let Some(next) = rows.get(self.taken[lane]).filter(|row| row.batch <= *batch) {
                let rules = self.ledger.rules;
                self.players.entry(next.row.user).or_insert_with(|| Oracle::new(rules)).act(next.row);
                touched.insert(next.row.user);
                self.taken[lane] += 1;
            }
        }
        for user in touched {
            let entry = self.players[&user].entry(user, self.slice);
            let old = match entry {
                Some(entry) => self.entries.insert(user, entry),
                None => self.entries.remove(&user),
            };
            if let Some(old) = old {
                let at = self.order.binary_search(&self.key(&old)).expect("an entry has its place");
                self.order.remove(at);
            }
            if let Some(entry) = entry {
                let key = self.key(&entry);
                let at = self.order.partition_point(|other| *other < key);
                self.order.insert(at, key);
            }
        }
    }

    /// Returns an entry's sort key.
    pub fn key(&self, entry: &Entry) -> Key {
        let rules = self.ledger.rules;
        let tiebreak = entry.second().map_or(0, |second| rules.better_tiebreak(second));
        (Reverse(rules.better(entry.score)), Reverse(tiebreak), entry.reached_at, entry.user)
    }

    /// Returns the number of players above a key, and above all that share its rank.
    pub fn above(&self, key: &Key) -> (usize, usize) {
        let own = self.order.partition_point(|other| other < key);
        let shared = self.ledger.rules.ties == Ties::Shared;
        (own, if shared { self.order.partition_point(|other| other.0 < key.0) } else { own })
    }

    /// Returns the number of players who rank below a key.
    pub fn worse(&self, key: &Key) -> usize {
        let shared = self.ledger.rules.ties == Ties::Shared;
        let better_or_equal = self.order.partition_point(|other| if shared { other.0 <= key.0 } else { other <= key });
        self.order.len() - better_or_equal
    }
}
