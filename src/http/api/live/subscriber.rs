//! A subscriber of a board's events, and the timing of its events.
//!
//! A subscriber keeps only the state that it sent last. It composes the next events when the client
//! can receive them.

use std::{convert::Infallible, rc::Rc, sync::Arc, time::Duration};

use actix_web::{
    HttpRequest,
    http::header,
    web::{Bytes, Data},
};
use futures::{Stream, stream};
use rand::RngExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{
    Error,
    access::key_cache,
    delivery::subscriptions::Subscription,
    http::{
        api::live::events::{EventWriter, Next},
        server::{
            Api,
            activity::{Activity, Streaming},
            slots::Slot,
        },
    },
    model::board::{Board, Reading},
    telemetry,
};

/// Interval between two checks of the subscriber's key. The cached state of a key may be four
/// seconds old.
pub(crate) const KEY_CHECKED_EVERY: Duration = Duration::from_millis(500);

/// Timeout of a check of the subscriber's key.
const KEY_CHECKED_WITHIN: Duration = Duration::from_secs(1);

/// Time between two events of an instance with many subscribers: 8,000 a second leave time for
/// reads and writes.
const TIME_OF_EVENT: Duration = Duration::from_micros(125);

pub(crate) struct Subscriber {
    api: Data<Api>,
    board: Arc<Board>,
    subscription: Subscription,
    writer: EventWriter,
    /// The connection, marked as an event stream once the head of the response is written.
    activity: Option<Rc<Activity>>,
    streaming: Option<Streaming>,
    authorization: Option<String>,
    /// Whether the board requires a key.
    reading: Reading,
    key_validity: KeyValidity,
    /// Its random time in each round of events, as a fraction of the round, so that subscribers do
    /// not all send at once.
    phase: f64,
    beat_at: Instant,
    key_at: Instant,
    _slot: Slot,
    _counted: telemetry::GaugeGuard,
}

/// Whether the subscriber's key still works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyValidity {
    Valid,
    Invalid,
    /// The check failed. Nothing new is sent until one succeeds.
    Unknown,
}

impl Subscriber {
    /// A subscriber that has sent nothing yet.
    pub(crate) fn new(
        api: &Data<Api>,
        request: &HttpRequest,
        board: Arc<Board>,
        subscription: Subscription,
        slot: Slot,
        writer: EventWriter,
    ) -> Self {
        let now = Instant::now();
        let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        Self {
            api: api.clone(),
            reading: board.reading,
            key_validity: KeyValidity::Valid,
            board,
            subscription,
            writer,
            activity: request.conn_data::<Rc<Activity>>().cloned(),
            streaming: None,
            authorization: authorization.map(ToOwned::to_owned),
            phase: rand::rng().random(),
            beat_at: now + api.settings.heartbeat,
            key_at: now + KEY_CHECKED_EVERY,
            _slot: slot,
            _counted: telemetry::GaugeGuard::count(telemetry::SUBSCRIBERS),
        }
    }

    pub(crate) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, async |mut subscriber| Some((Ok(subscriber.next().await?), subscriber)))
    }

    /// The next events or heartbeat; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.streaming.is_none() {
            self.streaming = self.activity.as_ref().map(Activity::streaming);
        }
        let ending = self.api.ending.clone();
        loop {
            let now = Instant::now();
            let snapshot = self.subscription.newest()?.ok()?;
            if snapshot.reading != self.reading {
                // Checked before anything is sent.
                (self.reading, self.key_at) = (snapshot.reading, now);
            }
            // Check the key when it is due: it may have been revoked or have expired.
            if self.reading == Reading::Key && self.key_at <= now {
                self.key_validity = tokio::select! {
                    biased;
                    () = ending.cancelled() => return None,
                    key_validity = check_key(&self.api, self.authorization.as_deref(), &self.board) => key_validity,
                };
                self.key_at = Instant::now() + KEY_CHECKED_EVERY;
                // The check may have taken a second.
                continue;
            }
            let may_see = match self.key_validity {
                _ if self.reading == Reading::Public => true,
                KeyValidity::Valid => true,
                KeyValidity::Unknown => snapshot.stale_since.is_some(),
                KeyValidity::Invalid => return None,
            };
            // The snapshot may be older than this subscriber's selection of players.
            let is_whole = snapshot.has(self.subscription.interest())
                || (snapshot.stale_since.is_some() && self.writer.has_begun());
            let has_news = may_see && is_whole && !self.writer.is_current(&snapshot);
            let next_at = self.writer.next_at().filter(|at| *at > now);
            // Send the news if the interval since the last event permits it.
            if has_news && next_at.is_none() {
                let slots = &self.api.subscribers;
                let pace = until_next_event(now.duration_since(slots.since()), slots.taken_by_all(), self.phase);
                match self.writer.next(&snapshot, self.subscription.interest(), now, pace).ok()? {
                    Next::Events(events) => {
                        self.beat_at = now + self.api.settings.heartbeat;
                        return Some(events);
                    }
                    Next::Nothing | Next::Later => {}
                }
                continue;
            }
            // Otherwise send a heartbeat when it is due.
            if self.beat_at <= now {
                self.beat_at = now + self.api.settings.heartbeat;
                return Some(self.writer.heartbeat(&snapshot).into());
            }
            // Wait for a change, or until the next event, heartbeat or check of the key is due.
            let mut wake_at = next_at.map_or(self.beat_at, |at| at.min(self.beat_at));
            if self.reading == Reading::Key {
                wake_at = wake_at.min(self.key_at);
            }
            tokio::select! {
                biased;
                () = ending.cancelled() => return None,
                // While it waits, it ignores changes: it will send the newest state.
                () = self.subscription.changed(), if next_at.is_none() => {}
                () = sleep_until(wake_at) => {}
            }
        }
    }
}

/// Returns whether the key of a stream still permits to read its board.
pub(crate) async fn check_key(api: &Api, authorization: Option<&str>, board: &Board) -> KeyValidity {
    let finding = key_cache::find(&api.instance.keys, authorization);
    let Ok(found) = timeout(KEY_CHECKED_WITHIN, finding).await else { return KeyValidity::Unknown };
    match found {
        Ok(known) if known.key.may_read(&board.slug).is_ok() => KeyValidity::Valid,
        Err(error) if error.is_temporary() || matches!(error, Error::Internal(_)) => KeyValidity::Unknown,
        _ => KeyValidity::Invalid,
    }
}

/// Delay of a subscriber's next event, `elapsed` after the first round: the time until its turn in
/// the next round. A subscriber skips a turn that is less than half a round away. So
/// on average each subscriber gets one event per round, even while others come and go, which shifts
/// all turns.
fn until_next_event(elapsed: Duration, subscribers: usize, phase: f64) -> Duration {
    let round = TIME_OF_EVENT.as_secs_f64() * subscribers as f64;
    let left = 1.0 - (elapsed.as_secs_f64() / round - phase).rem_euclid(1.0);
    Duration::from_secs_f64(round * if left < 0.5 { left + 1.0 } else { left })
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng as _, rngs::StdRng};

    use super::*;

    #[test]
    fn each_subscriber_has_one_event_a_round() {
        let seed = rand::random::<u64>();
        eprintln!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for come_and_go in [false, true] {
            let phase = random.random();
            let day = Duration::from_hours(24);
            let (mut elapsed, mut gaps) = (day, Vec::new());
            while gaps.len() < 1_000 {
                let subscribers = if come_and_go { random.random_range(7_900..8_100) } else { 8_000 };
                let gap = until_next_event(elapsed, subscribers, phase);
                gaps.push(gap.as_secs_f64());
                // Events are a little late.
                elapsed += gap + Duration::from_millis(random.random_range(0..20));
            }
            let round = TIME_OF_EVENT.as_secs_f64() * 8_000.0;
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            assert!((0.9..1.1).contains(&(mean / round)), "{mean} s for a round of {round} s");
            assert!(gaps.iter().all(|gap| (0.49..1.52).contains(&(gap / round))), "{gaps:?}");
        }
    }
}
