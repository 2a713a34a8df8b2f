//! Writes the events that SQL callers have submitted, through the same writers as requests.
//!
//! An event is removed from the inbox after it is written. After a crash in between it is written
//! again, and its id keeps it from counting twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use tokio::{
    sync::Semaphore,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    Result,
    boards::{self, Boards},
    model::{score::Event, user::UserId},
    ranking::rankings::Rankings,
    scoring::{self, batch::EventOutcome, writer::Writers},
    store::{
        inbox::{FailedEvent, Inbox, InboxBegin, SubmittedEvent},
        rows::paired,
    },
};

/// Interval of looking for submitted events. They are usually written within 100 ms of their commit.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Boards whose events are written at the same time, each on a connection of its own. As many that
/// cannot be written now delay the others until their statements time out.
const BOARDS_AT_ONCE: usize = 2;

/// Pause before the events of a board are tried again after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The parts of an instance that write submitted events.
#[derive(Debug)]
pub(crate) struct InboxWriter {
    inbox: Inbox,
    boards: Arc<Boards>,
    writers: Arc<Writers>,
    rankings: Arc<Rankings>,
    permits: Semaphore,
}

impl InboxWriter {
    pub(crate) fn new(inbox: Inbox, boards: Arc<Boards>, writers: Arc<Writers>, rankings: Arc<Rankings>) -> Self {
        Self { inbox, boards, writers, rankings, permits: Semaphore::new(BOARDS_AT_ONCE) }
    }

    /// Writes submitted events until the future is dropped.
    pub(crate) async fn run(self) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut begin, mut busy, mut writing) = (InboxBegin::default(), BTreeSet::new(), FuturesUnordered::new());
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Some(board_id) = writing.next() => {
                    busy.remove(&board_id);
                    continue;
                }
            }
            let excluded: Vec<i32> = busy.iter().copied().collect();
            match self.inbox.boards(&mut begin, &excluded).await {
                Ok(boards) => {
                    for (board_id, slug) in boards {
                        busy.insert(board_id);
                        writing.push(self.write_board(board_id, slug, begin.from));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "could not look for submitted scores");
                    begin = InboxBegin::default();
                    ticks.reset_after(RETRY_AFTER);
                }
            }
        }
    }

    /// Writes the submitted events of a board; returns its id. Pauses after a failure, and while
    /// another instance writes them.
    async fn write_board(&self, board_id: i32, slug: String, from: i64) -> i32 {
        let mut has_written = false;
        loop {
            match self.write_some(board_id, &slug, from).await {
                Ok(Some(true)) => has_written = true,
                Ok(Some(false)) => return board_id,
                // There were no more.
                Ok(None) if has_written => return board_id,
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(board = slug, %error, "submitted scores wait because they cannot be written now");
                    break;
                }
            }
        }
        sleep(RETRY_AFTER).await;
        board_id
    }

    /// Writes the oldest events of a board, and removes them from the inbox, except those that a
    /// later attempt may write. Returns whether there may be more, `None` if another instance
    /// has taken them; the error of events that stay.
    async fn write_some(&self, board_id: i32, slug: &str, from: i64) -> Result<Option<bool>> {
        let _permit = self.permits.acquire().await;
        let Some(mut taken) = self.inbox.take(board_id, from).await? else { return Ok(None) };
        let board = boards::find(&self.boards, &slug.parse()?).await?;
        let (mut written, mut failed, mut postponed) = (Vec::new(), Vec::new(), None);
        // The events of a player are written together or wait together, so they keep their order. Others
        // are queued as if they came alone, so that bad ones affect no other player.
        let mut by_player: BTreeMap<UserId, (Vec<i64>, Vec<Event>)> = BTreeMap::new();
        let events = mem::take(&mut taken.events);
        for SubmittedEvent { number, event } in events {
            match event {
                Ok(event) => {
                    let (numbers, events) = by_player.entry(event.user_id.clone()).or_default();
                    numbers.push(number);
                    events.push(event);
                }
                Err(error) => failed.push(FailedEvent::new(number, &error, None)),
            }
        }
        let submit = |events| scoring::submit(&self.writers, &self.rankings, &board, events, false);
        let answers = by_player.into_values().map(|(numbers, events)| async { (numbers, submit(events).await) });
        for (numbers, answers) in join_all(answers).await {
            match answers {
                Ok(answers) => {
                    for (number, answer) in paired("submitted events and answers", numbers, answers)? {
                        match answer {
                            Ok(EventOutcome::Accepted { .. }) => written.push(number),
                            Ok(EventOutcome::Quarantined { quarantine_id, violation, .. }) => {
                                failed.push(FailedEvent::new(number, &violation.error(&board), Some(quarantine_id)));
                            }
                            Err(error) => failed.push(FailedEvent::new(number, &error, None)),
                        }
                    }
                }
                // The batch failed, not its events.
                Err(error) => {
                    if !error.is_temporary() {
                        tracing::error!(?numbers, %error, "submitted scores cannot be written");
                    }
                    postponed.get_or_insert(error);
                }
            }
        }
        let may_be_more = taken.may_be_more;
        taken.settle(&written, &failed).await?;
        postponed.map_or(Ok(Some(may_be_more)), Err)
    }
}
