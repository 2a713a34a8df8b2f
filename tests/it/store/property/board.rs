//! A board of the database and its oracle: operations go to both, and their answers are compared.

use std::{collections::HashMap, sync::Arc};

use centile::tested::{self, Batches};
use chrono::{DateTime, TimeDelta, Utc};
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{Oracle, Players};
use crate::support::{
    layout,
    oracle::{Act, Entry, Event, Row, Slice, Verdict, lane_of},
    random::{Source, now},
};

/// An open period, as the database names it.
#[derive(Debug, Clone)]
pub struct Period {
    pub id: i64,
    pub ranking_id: i64,
    /// `all_time`, `week:2024-01-15`.
    pub selector: String,
    pub slice: Slice,
}

/// The state of all periods, by id, at some batch of each lane.
#[derive(Debug)]
pub struct Moment {
    pub batches: Vec<i64>,
    pub entries: HashMap<i64, Vec<Entry>>,
}

/// A board of the database with its oracle.
#[derive(Debug)]
pub struct Board {
    pub id: i32,
    pub slug: String,
    pub lanes: i16,
    pub oracle: Oracle,
    /// Last batch of each lane.
    pub batches: Vec<i64>,
    pub periods: Vec<Period>,
    pub moments: Vec<Moment>,
    /// Lane of each player, by internal id.
    pub player_lanes: HashMap<i64, i16>,
    /// Lane and batch of each ledger row.
    pub numbers: HashMap<i64, (i16, i64)>,
    /// The time of a clock that was set back since.
    clock_was: Option<DateTime<Utc>>,
    /// The answer to each score, by transaction id.
    answers: HashMap<i64, Value>,
    /// Transaction ids of events, by their number in [`Source::sent`].
    ids: HashMap<usize, i64>,
    /// Writes batches with the service's code.
    writer: Arc<Batches>,
}

/// Answer to an event: outcome, whether it repeats an earlier one, and the result if accepted.
type Answer = (&'static str, bool, Option<Value>);

impl Board {
    /// Creates a board with the rules of `source`.
    pub async fn create(
        connection: &mut PgConnection,
        source: &Source,
        players: &Players,
        slug: &str,
        lanes: i16,
        batches: &Arc<Batches>,
    ) -> Self {
        let player_lanes = players.iter().map(|(user, player)| (player.internal_id, lane_of(user, lanes))).collect();
        let rules = source.rules;
        let mut document = json!({
            "lanes": lanes,
            "time_zone": source.time_zone,
            "points_min": rules.points_min,
            "points_max": rules.points_max,
            // Of two boards, one has one lane, and the other four.
            "buckets": if (source.users.len() + usize::from(lanes.unsigned_abs())).is_multiple_of(2) { "all" } else { "all_time" },
        });
        rules.add_to(&mut document);
        if !source.layout_bounds.is_empty() {
            document["first_layout"] = json!({"bounds": source.layout_bounds});
        }
        let id = sqlx::query_scalar("SELECT centile.create_board($1, $2)")
            .bind(slug)
            .bind(document)
            .fetch_one(connection)
            .await
            .unwrap();
        Self {
            id,
            slug: slug.to_owned(),
            lanes,
            oracle: Oracle::new(rules),
            batches: (0..lanes).map(|_| 0).collect(),
            periods: Vec::new(),
            moments: Vec::new(),
            player_lanes,
            numbers: HashMap::new(),
            clock_was: None,
            answers: HashMap::new(),
            ids: HashMap::new(),
            writer: Arc::clone(batches),
        }
    }

    /// Sends the latest events of `source`, in one batch per lane. If `dated`, events may have
    /// their own times.
    pub async fn record(
        &mut self,
        connection: &mut PgConnection,
        source: &mut Source,
        players: &Players,
        events: &[Event],
        dated: bool,
    ) {
        let numbered: Vec<(usize, &Event)> = (source.sent.len() - events.len()..).zip(events).collect();
        let mut lanes: Vec<i16> = (0..self.lanes).collect();
        lanes.shuffle(&mut source.rng);
        for lane in lanes {
            let of_lane = numbered.iter().filter(|(_, event)| lane_of(&event.user, self.lanes) == lane);
            // A live event creates an unknown user; an import refuses it.
            let is_known = |(_, event): &&(usize, &Event)| dated || players.contains_key(&event.user);
            let of_lane: Vec<(usize, &Event)> = of_lane.filter(is_known).copied().collect();
            if !of_lane.is_empty() {
                self.record_batch(connection, source, players, (lane, dated), &of_lane).await;
            }
        }
    }

    async fn record_batch(
        &mut self,
        connection: &mut PgConnection,
        source: &mut Source,
        players: &Players,
        (lane, dated): (i16, bool),
        events: &[(usize, &Event)],
    ) {
        let before = now();
        let plain: Vec<&Event> = events.iter().map(|(_, event)| *event).collect();
        let open_first = dated && source.one_in(5);
        let (batch, answers) = self.send(connection, (lane, dated), &plain, open_first).await;
        self.find_periods(connection).await;
        assert_eq!(answers.len(), events.len(), "one answer for each event");
        let slices = self.slices();
        let last = self.last_at(lane);
        let mut took_any = false;
        for ((number, event), (outcome, repeated, result)) in events.iter().zip(&answers) {
            let user = players.get(&event.user);
            let given = result.as_ref().filter(|_| !repeated).map(|result| time_of(&result["occurred_at"]));
            let at = event.at.or(given).unwrap_or(last.map_or(before, |last| last.max(before)));
            let internal_id = user.map(|player| player.internal_id);
            let verdict = self.oracle.judge(event, internal_id, user.is_some_and(|player| player.marked), at, &slices);
            let expected = match verdict {
                Verdict::Accepted | Verdict::Repeated(_) => "accepted",
                Verdict::Refused(reason) => reason,
            };
            assert_eq!(*outcome, expected, "{event:?} on {}", self.slug);
            match verdict {
                Verdict::Accepted => {
                    let user = internal_id.unwrap();
                    let was: Vec<Option<Entry>> = slices.iter().map(|slice| self.oracle.entry(user, *slice)).collect();
                    let result = result.as_ref().unwrap();
                    let id = result["transaction_id"].as_i64().unwrap();
                    assert!(!repeated && !self.numbers.contains_key(&id), "{result}");
                    let act = Act::Score { points: event.points, tiebreak: event.tiebreak };
                    self.oracle.take(event, Some(Row { id, user, act, at }));
                    let periods = if dated { json!({}) } else { self.answer(user, at, &was) };
                    assert_eq!(given, Some(at));
                    let in_call = last <= Some(at) && (before <= at && at <= now() || Some(at) == last);
                    assert!(event.at.is_some() || in_call, "{at} is the time of the call, {last:?} the lane's last");
                    assert_eq!(result["periods"], periods, "{event:?} on {}", self.slug);
                    self.note(id, lane, batch);
                    self.answers.insert(id, result.clone());
                    self.ids.insert(*number, id);
                    source.instants.push(at);
                    took_any = true;
                }
                Verdict::Repeated(id) => {
                    assert_eq!((*repeated, result.as_ref()), (true, self.answers.get(&id)), "{event:?}");
                    self.oracle.take(event, None);
                }
                Verdict::Refused(_) => {
                    assert_eq!(*result, None, "{outcome}: {event:?}");
                    self.oracle.take(event, None);
                }
            }
        }
        self.oracle.end_batch();
        let last = &mut self.batches[usize::from(lane.unsigned_abs())];
        *last += i64::from(took_any);
        assert_eq!(batch, *last, "{answers:?}");
    }

    /// Writes a batch like the service. Returns the lane's last batch, and an answer for each
    /// event.
    async fn send(
        &self,
        connection: &mut PgConnection,
        (lane, dated): (i16, bool),
        events: &[&Event],
        open_first: bool,
    ) -> (i64, Vec<Answer>) {
        let past = |at: &DateTime<Utc>| *at <= now() && at.timestamp() > 1_500_000_000;
        let good: Vec<DateTime<Utc>> = events.iter().filter_map(|event| event.at).filter(past).collect();
        for at in &good {
            let statement = "SELECT centile.ensure_ledger_months($1, $1)";
            sqlx::query(statement).bind(at).execute(&mut *connection).await.unwrap();
        }
        if open_first {
            let statement = "SELECT centile_store.open_periods($1, $2)";
            sqlx::query(statement).bind(self.id).bind(&good).execute(&mut *connection).await.unwrap();
        }
        let submitted = events.iter().map(|event| tested::Event {
            user_id: event.user.parse().unwrap(),
            points: event.points,
            tiebreak: event.tiebreak,
            reason: event.reason.clone(),
            id: event.id.clone(),
            occurred_at: event.at,
            metadata: None,
        });
        self.writer.write(self.id, lane, dated, &submitted.collect::<Vec<_>>()).await.unwrap()
    }

    /// Returns the expected answer about each period of a live event, given the entries before it.
    fn answer(&self, user: i64, at: DateTime<Utc>, was: &[Option<Entry>]) -> Value {
        let mut periods = serde_json::Map::new();
        for (period, was) in self.periods.iter().zip(was).filter(|(period, _)| period.slice.holds(at)) {
            let entry = self.oracle.entry(user, period.slice).unwrap();
            let was = was.map(|was| (self.rank_key(was.score), self.oracle.rules.tie_key(&was)));
            let said = json!({"user": user, "score": entry.score, "was": was});
            periods.insert(period.selector.clone(), said);
        }
        periods.into()
    }

    /// Returns a score's rank key.
    pub fn rank_key(&self, score: i64) -> i64 {
        i64::try_from(self.oracle.rules.better(score)).expect("a score within bounds")
    }

    /// Returns the time that no event of a lane may precede: that of its last ledger row, or of a
    /// clock set back since.
    fn last_at(&self, lane: i16) -> Option<DateTime<Utc>> {
        let rows = self.oracle.rows.iter().filter(|row| self.numbers[&row.id].0 == lane);
        rows.map(|row| row.at).max().max(self.clock_was)
    }

    /// Simulates that the database's clock was ahead and has just been corrected.
    pub async fn set_clock_back(&mut self, connection: &mut PgConnection) {
        let statement = "UPDATE centile_store.board_lanes SET last_at = greatest(last_at, $2) WHERE board_id = $1";
        let ahead = now() + TimeDelta::milliseconds(400);
        sqlx::query(statement).bind(self.id).bind(ahead).execute(connection).await.unwrap();
        self.clock_was = Some(ahead);
    }

    /// Checks and records the lane and batch of a ledger row.
    fn note(&mut self, id: i64, lane: i16, batch: i64) {
        let number = self.batches[usize::from(lane.unsigned_abs())] + 1;
        assert_eq!(batch, number, "batch of lane {lane} of {}", self.slug);
        self.numbers.insert(id, (lane, number));
    }

    /// Bans or unbans a player on this board.
    pub async fn ban(&mut self, connection: &mut PgConnection, user: &str, internal_id: i64, banned: bool) {
        let statement = "SELECT centile.ban_user($1, $2, $3, 'because')";
        let changed: Result<bool, _> =
            sqlx::query_scalar(statement).bind(&self.slug).bind(user).bind(banned).fetch_one(&mut *connection).await;
        let expected =
            self.oracle.is_banned(internal_id) != banned && self.oracle.rows.iter().any(|row| row.user == internal_id);
        assert_eq!(changed.unwrap(), expected, "ban {banned} of {user} on {}", self.slug);
        if expected {
            self.take_act(connection, if banned { Act::Ban } else { Act::Unban }, internal_id).await;
        } else if banned {
            // An empty batch, which makes a batch in progress start again.
            self.batches[usize::from(self.player_lanes[&internal_id].unsigned_abs())] += 1;
        }
    }

    /// Voids the score of this event, if it was accepted.
    pub async fn void(&mut self, connection: &mut PgConnection, number: usize) {
        let Some(&id) = self.ids.get(&number) else { return };
        let target = *self.oracle.rows.iter().find(|row| row.id == id).unwrap();
        let statement = "SELECT centile.void_score($1, $2)";
        let changed: Result<bool, _> =
            sqlx::query_scalar(statement).bind(&self.slug).bind(id).fetch_one(&mut *connection).await;
        let expected = !self.oracle.is_voided(id);
        if expected && self.oracle.out_of_range(target.user, id, &self.slices()) {
            assert_eq!(code(&changed.unwrap_err()), OUT_OF_RANGE);
            return;
        }
        assert_eq!(changed.unwrap(), expected, "void of {id} on {}", self.slug);
        if expected {
            self.take_act(connection, Act::Void(id), target.user).await;
        }
    }

    /// Resets a player; returns the time.
    pub async fn reset(&mut self, connection: &mut PgConnection, user: &str, internal_id: i64) -> DateTime<Utc> {
        let statement = "SELECT centile.reset_player($1, $2, 'because')";
        let id: i64 =
            sqlx::query_scalar(statement).bind(&self.slug).bind(user).fetch_one(&mut *connection).await.unwrap();
        let last = self.last_at(lane_of(user, self.lanes));
        let row = self.take_act(connection, Act::Reset, internal_id).await;
        assert_eq!(row.id, id);
        assert!(last.is_none_or(|last| last < row.at), "a reset at {} is later than {last:?}", row.at);
        row.at
    }

    /// Reads the last act of the ledger.
    async fn take_act(&mut self, connection: &mut PgConnection, act: Act, user: i64) -> Row {
        let (id, kind, at, lane, batch): (i64, String, DateTime<Utc>, i16, i64) = sqlx::query_as(
            "SELECT transaction_id, kind, occurred_at, lane, batch FROM centile.score_history
             WHERE board = $1 ORDER BY transaction_id DESC LIMIT 1",
        )
        .bind(&self.slug)
        .fetch_one(connection)
        .await
        .unwrap();
        assert_eq!(kind, act.kind());
        self.note(id, lane, batch);
        self.batches[usize::from(lane.unsigned_abs())] += 1;
        let row = Row { id, user, act, at };
        self.oracle.act(row);
        row
    }

    /// Changes the layouts of all rankings.
    pub async fn scatter(&mut self, connection: &mut PgConnection, seed: u64) {
        self.find_periods(connection).await;
        let mut random = StdRng::seed_from_u64(seed);
        for period in &self.periods {
            layout::scatter(connection, period.ranking_id, &mut random, layout::FEW).await;
        }
    }

    /// Reads the open periods.
    async fn find_periods(&mut self, connection: &mut PgConnection) {
        type Known = (i64, i64, String, Option<DateTime<Utc>>, Option<DateTime<Utc>>);
        let rows: Vec<Known> = sqlx::query_as(
            "SELECT period_id, ranking_id, CASE kind WHEN 'all_time' THEN kind ELSE kind || ':' || label END,
                    nullif(starts_at, '-infinity'), nullif(ends_at, 'infinity')
             FROM centile.periods WHERE board = $1 ORDER BY period_id",
        )
        .bind(&self.slug)
        .fetch_all(connection)
        .await
        .unwrap();
        let period = |(id, ranking_id, selector, starts_at, ends_at)| Period {
            id,
            ranking_id,
            selector,
            slice: Slice { starts_at, ends_at },
        };
        self.periods = rows.into_iter().map(period).collect();
    }

    fn slices(&self) -> Vec<Slice> {
        self.periods.iter().map(|period| period.slice).collect()
    }
}

/// SQLSTATE of a number that leaves the range of its type.
const OUT_OF_RANGE: &str = "22003";

fn code(error: &sqlx::Error) -> String {
    let found = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    found.map(std::borrow::Cow::into_owned).unwrap_or_default()
}

fn time_of(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is a time"));
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
