//! Bounds on an answer's version: the lower bound from acknowledged changes, and the upper bound
//! from later answers.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{
    oracle::Act,
    record::{Acknowledged, Answer, Change, Question},
    replay::{Ledger, LedgerRow},
};

/// Maximum lag of top lists behind changes that other instances acknowledged.
const MAX_LAG: Duration = Duration::from_millis(250);

/// The last acknowledged batch of each lane from a time on.
type Steps = Vec<(Instant, Vec<i64>)>;

/// Events acknowledged by any time: by all instances together, and by each.
#[derive(Debug)]
pub struct MinimumVersions {
    all: Steps,
    of_instance: HashMap<usize, Steps>,
    nothing: Vec<i64>,
}

impl MinimumVersions {
    /// Computes the steps from a board's confirmed changes. The ledger gives the batch of each.
    pub fn new(changes: &[&Acknowledged], ledger: &Ledger) -> Self {
        let places = Places::new(ledger);
        let mut changes = changes.to_vec();
        changes.sort_by_key(|change| change.at);
        let nothing = vec![0; ledger.lanes()];
        let mut minimum = Self { all: Vec::new(), of_instance: HashMap::new(), nothing };
        for change in changes {
            // An act that changed nothing has no row.
            let Some(row) = places.row(&change.what) else { continue };
            for steps in [&mut minimum.all, minimum.of_instance.entry(change.instance).or_default()] {
                let mut held = steps.last().map_or_else(|| minimum.nothing.clone(), |(_, held)| held.clone());
                if held[row.lane] < row.batch {
                    held[row.lane] = row.batch;
                    steps.push((change.at, held));
                }
            }
        }
        minimum
    }

    /// Returns the minimum version of an answer.
    pub fn of(&self, answer: &Answer) -> Vec<i64> {
        if !matches!(answer.question, Question::Top { .. }) {
            return self.before(&self.all, answer.sent_at);
        }
        let others = answer.sent_at.checked_sub(MAX_LAG);
        let others = others.map_or_else(|| self.nothing.clone(), |at| self.before(&self.all, at));
        let own = self.of_instance.get(&answer.instance);
        let own = own.map_or_else(|| self.nothing.clone(), |steps| self.before(steps, answer.sent_at));
        own.into_iter().zip(others).map(|(own, others)| own.max(others)).collect()
    }

    /// Describes the error if an answer is below its minimum version.
    pub fn missed(&self, answer: &Answer, batches: &[i64]) -> Option<String> {
        let least = self.of(answer);
        let is_old = batches.iter().zip(&least).any(|(held, least)| held < least);
        is_old.then(|| format!("{batches:?} is older than {least:?}, which was acknowledged before"))
    }

    fn before(&self, steps: &Steps, at: Instant) -> Vec<i64> {
        let passed = steps.partition_point(|(from, _)| *from < at);
        steps[..passed].last().map_or_else(|| self.nothing.clone(), |(_, held)| held.clone())
    }
}

/// Finds the ledger rows of confirmed changes.
struct Places<'a> {
    scores: HashMap<i64, &'a LedgerRow>,
    reasons: HashMap<&'a str, &'a LedgerRow>,
    voids: HashMap<i64, &'a LedgerRow>,
}

impl<'a> Places<'a> {
    fn new(ledger: &'a Ledger) -> Self {
        let target = |row: &'a LedgerRow| match row.row.act {
            Act::Void(target) => Some((target, row)),
            _ => None,
        };
        Self {
            scores: ledger.rows.iter().map(|row| (row.row.id, row)).collect(),
            reasons: ledger.rows.iter().filter_map(|row| Some((row.reason.as_deref()?, row))).collect(),
            voids: ledger.rows.iter().filter_map(target).collect(),
        }
    }

    fn row(&self, change: &Change) -> Option<&'a LedgerRow> {
        match change {
            Change::Score { result, .. } => self.scores.get(&result["transaction_id"].as_i64()?),
            Change::Act { reason } => self.reasons.get(reason.as_str()),
            Change::Void { transaction_id } => self.voids.get(transaction_id),
        }
        .copied()
    }
}

/// The versions of later answers: an earlier answer cannot be newer.
#[derive(Debug)]
pub struct LaterVersions(Steps);

impl LaterVersions {
    /// Collects all answers with their versions.
    pub fn new<'a>(versions: impl Iterator<Item = (&'a Answer, &'a [i64])>) -> Self {
        // Top lists may be older than answers that others have received.
        let exact = versions.filter(|(answer, _)| !matches!(answer.question, Question::Top { .. }));
        let mut seen: Steps = exact.map(|(answer, batches)| (answer.sent_at, batches.to_vec())).collect();
        seen.sort_by_key(|(sent_at, _)| *sent_at);
        for place in (1..seen.len()).rev() {
            let (before, after) = seen.split_at_mut(place);
            for (earlier, later) in before[place - 1].1.iter_mut().zip(&after[0].1) {
                *earlier = *later.min(earlier);
            }
        }
        Self(seen)
    }

    /// Returns the lowest version of the answers to questions sent after `at`.
    pub fn after(&self, at: Instant) -> Option<&[i64]> {
        self.0.get(self.0.partition_point(|(sent_at, _)| *sent_at <= at)).map(|(_, batches)| batches.as_slice())
    }
}
