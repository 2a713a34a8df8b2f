//! What a load sent and what it was answered, with the order of both.

use std::time::Instant;

use serde_json::Value;

/// All that a load did.
#[derive(Debug, Default)]
pub struct Record {
    pub answers: Vec<Answer>,
    pub acknowledged: Vec<Acknowledged>,
}

impl Record {
    /// Takes over what another part of the load did.
    pub fn join(&mut self, mut other: Self) {
        self.answers.append(&mut other.answers);
        self.acknowledged.append(&mut other.acknowledged);
    }

    /// Gives its instances other numbers, before it is joined to what was done on others.
    pub fn renumber(mut self, by: usize) -> Self {
        self.answers.iter_mut().for_each(|answer| answer.instance += by);
        self.acknowledged.iter_mut().for_each(|change| change.instance += by);
        self
    }
}

/// What was asked about a ranking.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// One player with so many above and below.
    Player {
        user: String,
        around: usize,
    },
    /// So many from a position on.
    Page {
        from: usize,
        limit: usize,
    },
    /// So many below the last row of an earlier page.
    After {
        last: Box<Value>,
        limit: usize,
    },
    /// Just these players.
    Chosen(Vec<String>),
    /// The rank that a score would have.
    RankOf(i64),
    /// The best.
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
    /// The kind of period asked for.
    pub period: &'static str,
    pub question: Question,
    /// Whether it came from a rank index.
    pub is_from_index: bool,
    /// Before the request went out.
    pub sent_at: Instant,
    /// After the answer was there.
    pub done_at: Instant,
    /// The body; none when the player has no entry (404).
    pub body: Option<String>,
}

/// A change that an instance confirmed.
#[derive(Debug)]
pub struct Acknowledged {
    pub board: usize,
    pub instance: usize,
    /// After the confirmation was there.
    pub at: Instant,
    pub what: Change,
}

/// How a confirmed change is found in the ledger.
#[derive(Debug)]
pub enum Change {
    /// The event that was sent, and what was answered.
    Score { event: Value, result: Value },
    /// An act with a reason of its own.
    Act { reason: String },
    /// The void of a score, this one's or an earlier one's.
    Void { transaction_id: i64 },
}
