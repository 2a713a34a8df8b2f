//! Writes a batch of score events: reads the state of its lane, decides, and commits if the state
//! is unchanged.

use std::collections::HashMap;

use crate::{
    Code, Error, Result,
    model::{
        id::{Batch, Lane},
        rank::RankChange,
        score::Event,
    },
    rules::{
        AcceptedEvent, Decisions, EarlierOutcome, EventDecision, EventSource, MissingPeriods, Pending, Refusal,
        Violation, decide,
    },
    store::{
        BucketWriter, ScoreWriter,
        batch::{BatchPlayers, BatchStart, CommitOutcome, CommittedBatch},
        rows::paired,
    },
};

/// Maximum attempts to write a batch.
const MAX_ATTEMPTS: usize = 10;

/// Maximum age of a batch that is not applied to bucket rows. Beyond it, live scores are refused; an
/// import first applies the batches.
const MAX_UNAPPLIED_SECONDS: f64 = 30.0;

#[derive(Debug)]
pub(crate) struct WrittenBatch {
    /// Number of the lane's last batch. A read of that batch or a later one sees these events.
    pub(crate) batch: Batch,
    /// One answer per event, in their order.
    pub(crate) answers: Vec<Result<EventOutcome, Refusal>>,
}

/// Answer to an event that is not refused.
#[derive(Debug, Clone)]
pub(crate) enum EventOutcome {
    /// The event is in the ledger.
    Accepted {
        accepted: AcceptedEvent,
        /// Whether this repeats the answer to an earlier event with the same id.
        repeated: bool,
        /// The ranks of the standings after the commit; empty unless requested.
        ranks: Vec<RankChange>,
    },
    Quarantined {
        /// Id of the event in quarantine.
        quarantine_id: i64,
        /// The rule that the event broke.
        violation: Violation,
        /// Whether this repeats the answer to an earlier event with the same id.
        repeated: bool,
    },
}

/// A lane, with what its writer remembers between batches.
#[derive(Debug)]
pub(crate) struct WriterLane {
    pub(crate) board_id: i32,
    pub(crate) number: Lane,
    /// Number of the lane's last batch after this writer's last write.
    last_batch: Option<Batch>,
    /// The state of the last batch, as far as the next one may use it.
    cached: Option<BatchStart>,
    /// Whether another instance wrote to the lane between this writer's last two batches.
    is_contended: bool,
}

impl WriterLane {
    /// Returns a lane to which this writer has not written yet.
    pub(crate) fn new(board_id: i32, number: Lane) -> Self {
        Self { board_id, number, last_batch: None, cached: None, is_contended: false }
    }

    /// Writes events of this lane, each with its board, in one transaction, and returns after the
    /// commit. The boards are that of the lane or, if that is a template, its boards.
    ///
    /// Reading and writing are separate transactions. The second one writes only if the lane is
    /// unchanged since the first; otherwise the batch starts again under the lane's lock. A writer
    /// that competes with others takes the lock from the start: otherwise small batches would
    /// always overtake a large one.
    pub(crate) async fn write_events(
        &mut self,
        score_writer: &ScoreWriter,
        bucket_writer: &BucketWriter,
        source: EventSource,
        events: &[(i32, &Event)],
    ) -> Result<WrittenBatch> {
        let (batch_players, pending) = by_player(events);
        let mut holds_lock = self.is_contended;
        let mut cached = self.cached.take();
        for _ in 0..MAX_ATTEMPTS {
            let mut session = score_writer.batch_session(self.board_id, self.number, holds_lock).await?;
            // Read the state of the lane. An uncontended writer reuses the rules and periods of its
            // last batch, and reads only the players.
            let next = match cached.take().filter(|_| source == EventSource::Live && !holds_lock) {
                Some(cached) => session.next_batch(cached, &batch_players, &pending).await?,
                None => None,
            };
            let mut begun = match next {
                Some(next) => next,
                None => session.begin_batch(source, &batch_players, &pending).await?,
            };
            // The bucket rows are too far behind. An import applies the batches first; live events
            // are refused.
            if begun.unapplied_seconds > MAX_UNAPPLIED_SECONDS {
                session.end(false).await?;
                if source == EventSource::Live {
                    let why = "scores of this board are accepted again when its rankings have caught up; retry";
                    return Err(Error::overload(why));
                }
                bucket_writer.apply(self.board_id, true).await?;
                continue;
            }
            // Create the players who are new, and start again. An import has created them.
            let players = paired("users and players", &batch_players.names, &begun.facts.players)?;
            let newcomers: Vec<String> =
                players.filter(|(_, player)| player.id.is_none()).map(|(user, _)| user.clone()).collect();
            if source == EventSource::Live && !newcomers.is_empty() {
                session.end(false).await?;
                score_writer.ensure_users(&newcomers, &vec![None; newcomers.len()]).await?;
                continue;
            }
            if source == EventSource::Live && begun.facts.rules.need_history() {
                session.read_history(&mut begun.facts, &pending).await?;
            }
            // Decide on the events. If a period or segment is missing, open it and start again.
            let decisions = match decide(&begun.facts, source, &pending) {
                Ok(decisions) => decisions,
                Err(missing) => {
                    session.end(false).await?;
                    score_writer.require_periods(self.board_id, self.number).await?;
                    match missing {
                        MissingPeriods::Periods(times) => score_writer.open_periods(self.board_id, &times).await?,
                        MissingPeriods::Segments(segments) => {
                            score_writer.open_segments(self.board_id, segments).await?;
                        }
                    }
                    continue;
                }
            };
            // Write the batch, unless no event leaves a row.
            let committed = if decisions.events.iter().any(writes) {
                match session.commit_batch(source, &begun, &pending, &decisions).await? {
                    CommitOutcome::Written(committed) => committed,
                    CommitOutcome::Stale => {
                        session.end(false).await?;
                        holds_lock = true;
                        continue;
                    }
                    CommitOutcome::MissingMonth => {
                        session.end(false).await?;
                        score_writer.ensure_ledger_months().await?;
                        continue;
                    }
                }
            } else {
                CommittedBatch { batch: begun.batch(), transaction_ids: Vec::new(), quarantine_ids: Vec::new() }
            };
            session.end(true).await?;
            // Remember what the next batch needs.
            self.is_contended = self.last_batch.is_some_and(|last| last != begun.batch());
            self.last_batch = Some(committed.batch);
            self.cached = Some(begun.after(committed.batch));
            return answers(committed, decisions);
        }
        Err(Error::retry(Code::ConcurrentChange, "other instances keep writing to the same lane; retry"))
    }
}

/// Returns whether an event leaves a row in the database.
fn writes(decided: &EventDecision) -> bool {
    matches!(decided, EventDecision::Accepted { .. } | EventDecision::Quarantined(_))
}

/// Returns the distinct players, and the events with the index of their player.
fn by_player<'a>(events: &[(i32, &'a Event)]) -> (BatchPlayers, Vec<Pending<'a>>) {
    let mut players = BatchPlayers::default();
    let mut indexes = HashMap::new();
    let pending = events.iter().map(|(board, event)| {
        let player = *indexes.entry((board, event.user_id.as_str())).or_insert_with(|| {
            players.boards.push(*board);
            players.names.push(event.user_id.to_string());
            players.names.len() - 1
        });
        Pending { player, event }
    });
    let pending = pending.collect();
    (players, pending)
}

fn answers(committed: CommittedBatch, decisions: Decisions) -> Result<WrittenBatch> {
    let CommittedBatch { batch, transaction_ids, quarantine_ids } = committed;
    let (mut transactions, mut quarantined) = (transaction_ids.into_iter(), quarantine_ids.into_iter());
    // The batch is committed. An error must not let the caller send it again without its ids.
    let mut answers: Vec<Result<EventOutcome, Refusal>> = Vec::with_capacity(decisions.events.len());
    for decided in decisions.events {
        let answer = match decided {
            EventDecision::Accepted { at, standings } => {
                let transaction_id = transactions.next().ok_or_else(Error::outcome_unknown)?;
                let accepted = AcceptedEvent { transaction_id, at, standings };
                Ok(EventOutcome::Accepted { accepted, repeated: false, ranks: Vec::new() })
            }
            EventDecision::Quarantined(violation) => {
                let quarantine_id = quarantined.next().ok_or_else(Error::outcome_unknown)?;
                Ok(EventOutcome::Quarantined { quarantine_id, violation, repeated: false })
            }
            EventDecision::Refused(refusal) => Err(refusal),
            EventDecision::AlreadyAnswered(EarlierOutcome::Accepted(accepted)) => {
                Ok(EventOutcome::Accepted { accepted, repeated: true, ranks: Vec::new() })
            }
            EventDecision::AlreadyAnswered(EarlierOutcome::Quarantined { quarantine_id, violation }) => {
                Ok(EventOutcome::Quarantined { quarantine_id, violation, repeated: true })
            }
            EventDecision::Repeats(index) => {
                let mut answer = answers[index].clone();
                if let Ok(EventOutcome::Accepted { repeated, .. } | EventOutcome::Quarantined { repeated, .. }) =
                    &mut answer
                {
                    *repeated = true;
                }
                answer
            }
        };
        answers.push(answer);
    }
    if transactions.next().is_some() || quarantined.next().is_some() {
        return Err(Error::outcome_unknown());
    }
    Ok(WrittenBatch { batch, answers })
}
