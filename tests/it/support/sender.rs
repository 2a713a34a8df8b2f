//! A caller that repeats every event until it is acknowledged, whatever happens to the service.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Instant,
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IteratorRandom as _};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    load::parsed,
    wait::{until, within},
};

/// Players of the board.
const PLAYERS: u32 = 200;
/// Maximum number of unanswered events. Without it, refusals at once would create more events in
/// half a minute than can be accepted in the next.
const MAX_OPEN: usize = 2_000;

/// Events with ids: unanswered ones, and acknowledged ones with their transaction ids.
#[derive(Debug)]
pub struct Sender {
    client: Client,
    key: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_id: u32,
    open: BTreeMap<u32, Value>,
    acknowledged: BTreeMap<u32, Acknowledged>,
    /// Answers that marked an event as a repeat.
    repeated: usize,
    /// Answers 503.
    unavailable: usize,
}

/// An acknowledged event.
#[derive(Debug, Clone)]
struct Acknowledged {
    event: Value,
    transaction_id: i64,
    /// Time of the first acknowledgement.
    at: Instant,
}

impl Sender {
    /// Creates a sender with a key that may write.
    pub fn new(key: String) -> Self {
        Self { client: super::client(), key, state: Mutex::default() }
    }

    /// Returns the numbers of acknowledged events, repeats, and answers 503.
    pub fn counts(&self) -> (usize, usize, usize) {
        let state = self.state.lock().expect("no panic");
        (state.acknowledged.len(), state.repeated, state.unavailable)
    }

    /// Waits until this many more events are acknowledged; returns the total.
    pub async fn wait_for_more(&self, more: usize) -> usize {
        let wanted = self.counts().0 + more;
        until("events are acknowledged", async || self.counts().0 >= wanted).await;
        self.counts().0
    }

    /// Starts this many callers on one instance. Each sends until `stop` or until the service no
    /// longer answers.
    pub fn spawn(self: &Arc<Self>, callers: usize, address: &str, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            let (sender, address, stop) = (Arc::clone(self), address.to_owned(), stop.clone());
            tasks.spawn(async move { sender.run(&address, &stop).await });
        }
        tasks
    }

    /// Sends to `address` until `stop` or until the service no longer answers.
    pub async fn run(&self, address: &str, stop: &CancellationToken) {
        let mut rng = StdRng::seed_from_u64(rand::random());
        while !stop.is_cancelled() {
            let events = self.events(&mut rng);
            if !self.send(address, events).await {
                return;
            }
        }
    }

    /// Sends all unanswered events until each is acknowledged.
    pub async fn finish(&self, address: &str) {
        within("all events are acknowledged", async {
            loop {
                let open: Vec<_> = self.state.lock().expect("no panic").open.clone().into_iter().collect();
                if open.is_empty() {
                    return;
                }
                for events in open.chunks(500) {
                    assert!(self.send(address, events.to_vec()).await, "the service no longer answers");
                }
            }
        })
        .await;
    }

    /// Returns new events, unanswered earlier ones and repeats of acknowledged ones.
    fn events(&self, rng: &mut StdRng) -> Vec<(u32, Value)> {
        let mut state = self.state.lock().expect("no panic");
        let again: Vec<_> = state.open.iter().sample(rng, 2).into_iter().map(|(n, e)| (*n, e.clone())).collect();
        let known = state.acknowledged.iter().choose(rng).map(|(n, known)| (*n, known.event.clone()));
        let mut events: Vec<_> = again.into_iter().chain(known.filter(|_| rng.random_ratio(1, 3))).collect();
        let most = if rng.random_ratio(1, 5) { 200 } else { 3 };
        let new = if state.open.len() < MAX_OPEN { rng.random_range(1..=most) } else { 0 };
        for _ in 0..new {
            let id = state.next_id;
            state.next_id += 1;
            let event = json!({
                "user_id": format!("p{}", rng.random_range(0..PLAYERS)), "points": rng.random_range(-3..=9),
                "id": format!("event {id}"), "reason": format!("event {id}"),
            });
            state.open.insert(id, event.clone());
            events.push((id, event));
        }
        events
    }

    /// Sends events once and records the acknowledged ones; `false` if there was no answer.
    async fn send(&self, address: &str, events: Vec<(u32, Value)>) -> bool {
        let bodies: Vec<&Value> = events.iter().map(|(_, event)| event).collect();
        let request = match bodies[..] {
            [one] => self.client.post(address).json(one),
            _ => self.client.post(format!("{address}/batch")).json(&json!({"events": bodies})),
        };
        let sent = request.bearer_auth(&self.key).send().await;
        let Ok(response) = sent else { return false };
        let status = response.status();
        let Ok(text) = response.text().await else { return false };
        let mut state = self.state.lock().expect("no panic");
        if status == StatusCode::SERVICE_UNAVAILABLE {
            state.unavailable += 1;
            return true;
        }
        assert_eq!(status, StatusCode::OK, "{text}");
        let mut answer = parsed(&text);
        let results = match answer["results"].as_array_mut() {
            Some(results) => std::mem::take(results),
            None => vec![answer],
        };
        assert_eq!(results.len(), events.len());
        for ((id, event), result) in events.into_iter().zip(results) {
            // The event's lane was unavailable.
            if result["error"]["status"] == 503 {
                state.unavailable += 1;
                continue;
            }
            assert_eq!(result["state"], "accepted", "{event}: {result}");
            let row = result["transaction_id"].as_i64().expect("the id of a transaction");
            state.repeated += usize::from(result["repeated"] == true);
            state.open.remove(&id);
            let known = Acknowledged { event, transaction_id: row, at: Instant::now() };
            let first = state.acknowledged.entry(id).or_insert(known).transaction_id;
            assert_eq!(first, row, "event {id} was acknowledged with two transaction ids");
        }
        true
    }

    /// Returns the ids of all acknowledged events.
    pub fn acknowledged(&self) -> BTreeSet<u32> {
        self.state.lock().expect("no panic").acknowledged.keys().copied().collect()
    }

    /// Removes the acknowledged events that the ledger lacks, and returns their ids and the times of
    /// their acknowledgements.
    pub async fn forget_lost(&self, pool: &PgPool) -> BTreeMap<u32, Instant> {
        let rows: Vec<i64> =
            sqlx::query_scalar("SELECT transaction_id FROM centile.score_history WHERE board = 'arena'")
                .fetch_all(pool)
                .await
                .expect("the ledger");
        let rows: BTreeSet<i64> = rows.into_iter().collect();
        let mut state = self.state.lock().expect("no panic");
        let lost = state.acknowledged.extract_if(.., |_, known| !rows.contains(&known.transaction_id));
        lost.map(|(id, known)| (id, known.at)).collect()
    }

    /// Checks that every event is in the ledger once, as acknowledged, and that the scores are the
    /// sums.
    pub async fn expect_all_once(&self, pool: &PgPool) {
        let state = self.state.lock().expect("no panic").acknowledged.clone();
        let rows: Vec<(String, i64, String, i64)> = sqlx::query_as(
            "SELECT reason, transaction_id, user_id, points FROM centile.score_history
             WHERE board = 'arena' AND kind = 'score'",
        )
        .fetch_all(pool)
        .await
        .expect("the ledger");
        assert_eq!(rows.len(), state.len(), "rows in the ledger, and events");
        let mut ledger: BTreeMap<String, (i64, String, i64)> = BTreeMap::new();
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for (reason, id, user, points) in rows {
            *sums.entry(user.clone()).or_default() += points;
            assert!(ledger.insert(reason.clone(), (id, user, points)).is_none(), "{reason} was applied twice");
        }
        for (n, Acknowledged { event, transaction_id: row, .. }) in state {
            let (id, user, points) = ledger.remove(&format!("event {n}")).unwrap_or_else(|| panic!("{event} is lost"));
            assert!(id == row && event["user_id"] == user.as_str() && event["points"] == points, "{event} as {row}");
        }
        let scores: Vec<(String, i64)> = sqlx::query_as(
            "SELECT user_id, score FROM centile.standings WHERE board = 'arena' AND kind = 'all_time' ORDER BY user_id COLLATE \"C\"",
        )
        .fetch_all(pool)
        .await
        .expect("the standings");
        assert_eq!(scores, sums.into_iter().collect::<Vec<_>>());
    }
}
