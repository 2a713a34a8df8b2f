//! A board of the service and its oracle: operations go to both, and their answers are compared.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::{Player, client::Client, find_players};
use crate::support::{
    is_cluster, layout,
    oracle::{Act, Entry, Event, Mode, Oracle, Row, Slice, Ties, Verdict},
    random::Source,
};

/// Periods by name, with their time ranges.
pub type Periods = BTreeMap<String, Slice>;

/// The answer to a score: per period the score after it, and the entry before it.
type PeriodResults = BTreeMap<String, (i64, Option<Entry>)>;

/// A board of the service with its oracle.
#[derive(Debug)]
pub struct Board {
    pub slug: String,
    pub oracle: Oracle,
    pub periods: Periods,
    /// The answers to the scores sent over HTTP, by transaction id.
    output: HashMap<i64, PeriodResults>,
    /// Transaction ids of events, by their number in [`Source::sent`].
    ids: HashMap<usize, i64>,
    /// Ids of the ledger rows that were read. In a cluster, a later row may have a lower id.
    known: Vec<i64>,
}

impl Board {
    /// Creates a board with the rules of `source`: its own, or those of a template.
    pub async fn create(client: &Client, pool: &PgPool, source: &mut Source, slug: &str, lanes: i16) -> Self {
        let rules = source.rules;
        let mut body = json!({
            "slug": slug,
            "periods": ["all_time", "day", "week", "month"],
            "lanes": lanes,
            "time_zone": source.time_zone,
            "points_min": rules.points_min,
            "points_max": rules.points_max,
            "buckets": if is_cluster() || source.rng.random() { "all" } else { "all_time" },
        });
        rules.add_to(&mut body);
        if !source.layout_bounds.is_empty() {
            body["first_layout"] = json!({"bounds": source.layout_bounds});
        }
        if is_cluster() || source.rng.random() {
            let (status, answer) = client.post("/v1/boards", &body, &mut source.rng).await;
            assert_eq!(status, 201, "{answer}");
        } else {
            eprintln!("{slug} is a board of a template");
            let rules = body.as_object_mut().unwrap();
            rules.retain(|rule, _| !["slug", "first_layout"].contains(&rule.as_str()));
            // An act may come before the first score.
            sqlx::query("SELECT centile.set_template($1, $1 || '*', $2), centile_store.ensure_board($1)")
                .bind(slug)
                .bind(&body)
                .execute(pool)
                .await
                .unwrap();
        }
        let (periods, output, ids) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        Self { slug: slug.to_owned(), oracle: Oracle::new(rules), periods, output, ids, known: Vec::new() }
    }

    /// Sends the latest events of `source` in one request; a single event as an object.
    pub async fn submit(&mut self, client: &Client, pool: &PgPool, source: &mut Source, events: &[Event]) {
        let numbered = (source.sent.len() - events.len()..).zip(events);
        let sent: Vec<(usize, &Event)> = numbered.collect();
        let bodies: Vec<Value> = sent.iter().map(|(_, event)| body_of(event)).collect();
        let alone = bodies.len() == 1 && source.rng.random();
        let (batch, body) = if alone { ("", bodies[0].clone()) } else { ("/batch", json!({"events": bodies})) };
        let ranks: bool = source.rng.random();
        let path = format!("/v1/boards/{}/scores{batch}?ranks={ranks}", self.slug);
        let (status, answer) = client.post(&path, &body, &mut source.rng).await;
        let results: Vec<Value> = match (alone, status) {
            (true, 200) => vec![answer],
            (true, _) => vec![json!({"state": "refused", "error": answer})],
            (false, _) => answer["results"].as_array().unwrap_or_else(|| panic!("{status} {answer}")).clone(),
        };
        assert_eq!(results.len(), sent.len(), "one result for each event");
        self.find_periods(client, source).await;
        let players = find_players(pool, source).await;
        let slices: Vec<Slice> = self.periods.values().copied().collect();
        let mut rows = Vec::new();
        let mut accepted = Vec::new();
        for ((number, event), result) in sent.iter().zip(&results) {
            let what = || format!("{event:?} on {}: {result}", self.slug);
            let player = players.get(&event.user);
            let at = if result["repeated"] == false { time_of(&result["occurred_at"]) } else { Utc::now() };
            let internal_id = player.map(|player| player.internal_id);
            let verdict =
                self.oracle.judge(event, internal_id, player.is_some_and(|player| player.banned), at, &slices);
            let row = match verdict {
                Verdict::Refused(reason) => {
                    let error = &result["error"];
                    assert_eq!(
                        (&result["state"], &error["status"]),
                        (&json!("refused"), &json!(status_of(reason))),
                        "{reason}: {}",
                        what()
                    );
                    None
                }
                Verdict::Accepted | Verdict::Repeated(_) => {
                    let id = result["transaction_id"].as_i64().unwrap_or_else(|| panic!("{}", what()));
                    assert_eq!(result["repeated"], json!(verdict != Verdict::Accepted), "{}", what());
                    assert!(
                        verdict == Verdict::Accepted || verdict == Verdict::Repeated(id),
                        "{verdict:?}: {}",
                        what()
                    );
                    accepted.push((id, internal_id, result));
                    let act = Act::Score { points: event.points, tiebreak: event.tiebreak };
                    let user = internal_id.unwrap_or_else(|| panic!("{}", what()));
                    (verdict == Verdict::Accepted).then_some(Row { id, user, act, at })
                }
            };
            let before = row.map(|row| self.entries(row.user, at));
            self.oracle.take(event, row);
            if let (Some(row), Some(before)) = (row, before) {
                let after = self.entries(row.user, at);
                let output =
                    |(name, entry): (String, Option<Entry>)| (name.clone(), (entry.unwrap().score, before[&name]));
                self.output.insert(row.id, after.into_iter().map(output).collect());
                self.ids.insert(*number, row.id);
                source.instants.push(row.at);
                rows.push(row);
            }
        }
        self.oracle.end_batch();
        for (id, user, result) in accepted {
            self.compare_told(id, user, result, ranks);
        }
        let mut found = self.new_rows(pool).await;
        // Lanes write concurrently, so sort by id.
        found.sort_by_key(|row| row.id);
        rows.sort_by_key(|row| row.id);
        assert_eq!(found, rows, "new rows in the ledger of {}", self.slug);
    }

    /// Returns a player's entries in the periods that contain an instant.
    fn entries(&self, user: i64, at: DateTime<Utc>) -> BTreeMap<String, Option<Entry>> {
        let held = self.periods.iter().filter(|(_, slice)| slice.holds(at));
        held.map(|(name, slice)| (name.clone(), self.oracle.entry(user, *slice))).collect()
    }

    /// Compares the answer about an event: scores as of the event, ranks as of now.
    fn compare_told(&self, id: i64, user: Option<i64>, result: &Value, ranks: bool) {
        let Some(output) = self.output.get(&id) else { panic!("{id} came by HTTP") };
        let mut expected = serde_json::Map::new();
        for (name, (score, was)) in output {
            let mut standing = json!({"score": score});
            if ranks {
                let places = self.oracle.standings(self.periods[name]);
                if let Some(place) = places.iter().find(|place| Some(place.entry.user) == user) {
                    standing["rank"] = json!(place.rank);
                }
                if let Some(was) = was {
                    standing["previous_rank"] = json!(self.oracle.rank_among_others(&places, was));
                }
            }
            expected.insert(name.clone(), standing);
        }
        assert_eq!(result["periods"], Value::from(expected), "{result} on {}", self.slug);
    }

    /// Imports those events that cannot be refused.
    pub async fn import(&mut self, client: &Client, pool: &PgPool, source: &mut Source, events: &[Event]) {
        let rules = self.oracle.rules;
        // Which of several events would overflow a sum depends on the order of the lanes.
        let adds = rules.mode == Mode::Sum && matches!(rules.ties, Ties::Second { replaced: false, .. });
        if adds || rules.mode == Mode::Sum && rules.points_max > 1000 {
            return;
        }
        let banned: HashSet<String> = find_players(pool, source)
            .await
            .into_iter()
            .filter(|(_, player)| player.banned)
            .map(|(user, _)| user)
            .collect();
        let good = |event: &&Event| {
            (rules.points_min..=rules.points_max).contains(&event.points)
                && event.tiebreak.is_none_or(|tiebreak| rules.accepts(tiebreak))
                && event.at.is_some_and(|at| at <= Utc::now() && at.timestamp() > 1_500_000_000)
                && !banned.contains(&event.user)
        };
        let events: Vec<Event> = events.iter().filter(good).map(|event| Event { id: None, ..event.clone() }).collect();
        let lines: Vec<String> = events.iter().map(|event| format!("{}\n", body_of(event))).collect();
        client.import(&self.slug, lines.concat()).await;
        self.find_periods(client, source).await;
        let players = find_players(pool, source).await;
        let rows = self.new_rows(pool).await;
        let key = |user: i64, points: i64, tiebreak: Option<i64>, at| (at, user, points, tiebreak);
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| match row.act {
                Act::Score { points, tiebreak } => key(row.user, points, tiebreak, row.at),
                act => panic!("an import wrote {act:?}"),
            })
            .collect();
        let internal_id = |event: &Event| players[&event.user].internal_id;
        let mut expected: Vec<_> = events
            .iter()
            .map(|event| key(internal_id(event), event.points, event.tiebreak, event.at.unwrap()))
            .collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "imported rows of {}", self.slug);
        for row in rows {
            source.instants.push(row.at);
            self.oracle.act(row);
        }
    }

    /// Voids the score of this event, if it was accepted.
    pub async fn void(&mut self, client: &Client, pool: &PgPool, source: &mut Source, number: usize) {
        let Some(&id) = self.ids.get(&number) else { return };
        let target = *self.oracle.rows.iter().find(|row| row.id == id).unwrap();
        let slices: Vec<Slice> = self.periods.values().copied().collect();
        let is_new = !self.oracle.is_voided(id);
        let overflows = is_new && self.oracle.out_of_range(target.user, id, &slices);
        let path = format!("/v1/boards/{}/transactions/{id}/void", self.slug);
        let (status, answer) = client.post(&path, &json!({"reason": "because"}), &mut source.rng).await;
        assert_eq!(status, if overflows { 422 } else { 204 }, "{answer}");
        self.take_acts(pool, (is_new && !overflows).then_some((target.user, Act::Void(id)))).await;
    }

    /// Records a reset of a player; `None` if there is no such player.
    pub async fn take_reset(&mut self, pool: &PgPool, player: Option<&Player>) -> Option<DateTime<Utc>> {
        self.take_acts(pool, player.map(|player| (player.internal_id, Act::Reset))).await
    }

    /// Records a ban or unban, which has a row on this board if the player has any.
    pub async fn take_ban(&mut self, pool: &PgPool, player: &Player, banned: bool) {
        let user = player.internal_id;
        let is_new = self.oracle.is_banned(user) != banned && self.oracle.rows.iter().any(|row| row.user == user);
        let act = if banned { Act::Ban } else { Act::Unban };
        self.take_acts(pool, is_new.then_some((user, act))).await;
    }

    /// Changes the layouts of all rankings in SQL, without the service. In a cluster, only a rebuild
    /// changes layouts.
    pub async fn scatter(&self, pool: &PgPool, seed: u64) {
        if is_cluster() {
            return;
        }
        let mut connection = pool.acquire().await.unwrap();
        let mut random = StdRng::seed_from_u64(seed);
        let statement = "SELECT ranking_id FROM centile.periods WHERE board = $1 AND ranking_id IS NOT NULL";
        let rankings: Vec<i64> =
            sqlx::query_scalar(statement).bind(&self.slug).fetch_all(&mut *connection).await.unwrap();
        for ranking_id in rankings {
            layout::scatter(&mut connection, ranking_id, &mut random, layout::FEW).await;
        }
    }

    /// Reads the ledger's new acts, compares them with `expected`, and records them. Returns the
    /// time of the last one.
    async fn take_acts(&mut self, pool: &PgPool, expected: Option<(i64, Act)>) -> Option<DateTime<Utc>> {
        let rows = self.new_rows(pool).await;
        let found: Vec<(i64, Act)> = rows.iter().map(|row| (row.user, row.act)).collect();
        assert_eq!(found, Vec::from_iter(expected), "new rows in the ledger of {}", self.slug);
        let at = rows.last().map(|row| row.at);
        for row in rows {
            self.oracle.act(row);
        }
        at
    }

    /// Returns the new rows of the ledger.
    async fn new_rows(&mut self, pool: &PgPool) -> Vec<Row> {
        type Written = (i64, i64, String, Option<i64>, Option<i64>, Option<i64>, DateTime<Utc>);
        let rows: Vec<Written> = sqlx::query_as(
            "SELECT t.id, t.user_id, t.kind, t.points, coalesce(t.second_number, t.tiebreak), t.voids_id, t.occurred_at
             FROM centile_store.score_transactions t JOIN centile.boards b USING (board_id)
             WHERE b.slug = $1 AND t.id <> ALL ($2) ORDER BY t.id",
        )
        .bind(&self.slug)
        .bind(&self.known)
        .fetch_all(pool)
        .await
        .unwrap();
        self.known.extend(rows.iter().map(|row| row.0));
        let act = |kind: &str, points: Option<i64>, tiebreak, voids: Option<i64>| match kind {
            "score" => Act::Score { points: points.unwrap(), tiebreak },
            "void" => Act::Void(voids.unwrap()),
            "reset" => Act::Reset,
            "ban" => Act::Ban,
            _ => Act::Unban,
        };
        let row = |(id, user, kind, points, tiebreak, voids, at): Written| {
            let act = act(&kind, points, tiebreak, voids);
            Row { id, user, act, at }
        };
        rows.into_iter().map(row).collect()
    }

    /// Reads the list of periods.
    async fn find_periods(&mut self, client: &Client, source: &mut Source) {
        let path = format!("/v1/boards/{}/periods?limit=1000", self.slug);
        let (status, answer) = client.get(&path, &mut source.rng).await;
        assert_eq!(status, 200, "{answer}");
        let bound = |value: &Value| value.as_str().map(|_| time_of(value));
        let period = |period: &Value| {
            let name = period["name"].as_str().unwrap().to_owned();
            (name, Slice { starts_at: bound(&period["starts_at"]), ends_at: bound(&period["ends_at"]) })
        };
        self.periods = answer["data"].as_array().unwrap().iter().map(period).collect();
    }
}

/// Returns an event's JSON without absent fields.
fn body_of(event: &Event) -> Value {
    let mut body = json!({"user_id": event.user, "points": event.points});
    let given = [
        ("tiebreak", event.tiebreak.map(Value::from)),
        ("reason", event.reason.clone().map(Value::from)),
        ("id", event.id.clone().map(Value::from)),
        ("occurred_at", event.at.map(|at| at.to_rfc3339().into())),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}

/// Returns the HTTP status of a refusal.
fn status_of(reason: &str) -> u16 {
    match reason {
        "banned" | "id_conflict" => 409,
        _ => 422,
    }
}

/// Parses a time in an answer.
pub fn time_of(value: &Value) -> DateTime<Utc> {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is a time"));
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
