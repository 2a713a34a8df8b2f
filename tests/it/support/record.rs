//! The requests and answers of a load, with their times.

use std::time::Instant;

use serde_json::Value;

/// Everything that a load did.
#[derive(Debug, Default)]
pub struct Record {
    pub answers: Vec<Answer>,
    pub acknowledged: Vec<Acknowledged>,
}

impl Record {
    /// Adds the record of another part of the load.
    pub fn join(&mut self, mut other: Self) {
        self.answers.append(&mut other.answers);
        self.acknowledged.append(&mut other.acknowledged);
    }

    /// Shifts the instances' numbers, so that the record can be joined with that of other
    /// instances.
    pub fn renumber(mut self, by: usize) -> Self {
        self.answers.iter_mut().for_each(|answer| answer.instance += by);
        self.acknowledged.iter_mut().for_each(|change| change.instance += by);
        self
    }
}

/// A question about a ranking.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// One player with this many neighbours on each side.
    Player {
        user: String,
        around: usize,
    },
    /// A page from a position.
    Page {
        from: usize,
        limit: usize,
    },
    /// A page after the last row of an earlier one.
    After {
        last: Box<Value>,
        limit: usize,
    },
    /// Chosen players.
    Chosen(Vec<String>),
    /// The rank of a score.
    RankOf(i64),
    /// The top list.
    Top {
        limit: usize,
    },
    Distribution,
}

/// A question with its answer.
#[derive(Debug)]
pub struct Answer {
    pub board: usize,
    pub instance: usize,
    /// The requested kind of period.
    pub period: &'static str,
    pub question: Question,
    /// Whether it came from a rank index.
    pub is_from_index: bool,
    /// Time before the request was sent.
    pub sent_at: Instant,
    /// Time after the answer arrived.
    pub done_at: Instant,
    /// The body; `None` if the player has no entry (404).
    pub body: Option<String>,
}

/// A change that an instance confirmed.
#[derive(Debug)]
pub struct Acknowledged {
    pub board: usize,
    pub instance: usize,
    /// Time after the confirmation arrived.
    pub at: Instant,
    pub what: Change,
}

/// How to find a confirmed change in the ledger.
#[derive(Debug)]
pub enum Change {
    /// A sent event and its result.
    Score { event: Value, result: Value },
    /// An act with a unique reason.
    Act { reason: String },
    /// The void of a score, by this request or an earlier one.
    Void { transaction_id: i64 },
}
