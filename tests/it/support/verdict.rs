//! Checks the answers of a load: each against the ranking at its version, and none older than
//! allowed.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgPool;

use super::{
    freshness::{LaterVersions, MinimumVersions},
    is_cluster,
    load::{Load, parsed},
    oracle::{Act, Oracle, Place, Slice, Ties, tenth_percentiles},
    record::{Acknowledged, Answer, Change, Question, Record},
    replay::{Key, Ledger, View},
};

/// Bars of a histogram.
const BARS: i128 = 20;

/// The result of the comparison.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Compared answers, by kind.
    pub answers: BTreeMap<&'static str, usize>,
    /// Compared changes.
    pub changes: usize,
    /// Repeated scores.
    pub repeated: usize,
    /// Number of distinct versions.
    pub versions: usize,
    /// All errors.
    pub wrong: Vec<String>,
}

impl Verdict {
    /// Fails if there was an error, and prints what was compared.
    pub fn expect_right(&self, what: &str) {
        let total: usize = self.answers.values().sum();
        eprintln!(
            "{what}: {total} answers {:?} at {} versions, {} changes, {} of them repeated",
            self.answers, self.versions, self.changes, self.repeated
        );
        let shown: Vec<&str> = self.wrong.iter().take(5).map(String::as_str).collect();
        assert!(self.wrong.is_empty(), "{what}: {} wrong, the first:\n{}", self.wrong.len(), shown.join("\n"));
    }
}

/// Reads the ledgers of a load's boards and compares all of its answers with them.
pub async fn of(pool: &PgPool, load: &Load, record: &Record) -> Verdict {
    let mut ledgers = Vec::new();
    for slug in &load.boards {
        ledgers.push(Ledger::read(pool, slug).await);
    }
    let epoch: String = sqlx::query_scalar("SELECT centile.epoch()").fetch_one(pool).await.expect("the epoch");
    judge(record, &ledgers, &epoch)
}

/// Compares everything. The ledgers are in the order of the load's boards.
fn judge(record: &Record, ledgers: &[Ledger], epoch: &str) -> Verdict {
    let mut verdict = Verdict::default();
    for (board, ledger) in ledgers.iter().enumerate() {
        let changes: Vec<_> = record.acknowledged.iter().filter(|change| change.board == board).collect();
        let answers: Vec<_> = record.answers.iter().filter(|answer| answer.board == board).collect();
        written(&changes, ledger, &mut verdict);
        read(&answers, &changes, ledger, epoch, &mut verdict);
    }
    verdict
}

/// Compares the confirmed scores with the ledger: player, points, and resulting score.
fn written(changes: &[&Acknowledged], ledger: &Ledger, verdict: &mut Verdict) {
    let mut wanted: HashMap<i64, Vec<(&Value, &Value)>> = HashMap::new();
    let mut of_event: HashMap<&str, &Value> = HashMap::new();
    for change in changes {
        verdict.changes += 1;
        if let Change::Score { event, result } = &change.what {
            let transaction = &result["transaction_id"];
            if event["id"]
                .as_str()
                .is_some_and(|id| of_event.insert(id, transaction).is_some_and(|one| one != transaction))
            {
                verdict.wrong.push(format!("{event} has several transactions in the ledger"));
            }
            verdict.repeated += usize::from(result["repeated"] == true);
            wanted.entry(number(&result["transaction_id"])).or_default().push((event, result));
        }
    }
    for (user, rows) in ledger.of_player() {
        let mut oracle = Oracle::new(ledger.rules);
        for row in rows {
            oracle.act(row.row);
            for (event, result) in wanted.remove(&row.row.id).unwrap_or_default() {
                let is_same = matches!(row.row.act, Act::Score { points, .. } if event["points"] == points)
                    && event["user_id"] == ledger.names[&user].as_str()
                    && time(&result["occurred_at"]) == Some(row.row.at);
                let scores = result["periods"].as_object().into_iter().flatten().all(|(name, standing)| {
                    let slice = ledger.periods.get(name).filter(|slice| slice.holds(row.row.at));
                    slice
                        .and_then(|slice| oracle.entry(user, *slice))
                        .is_some_and(|entry| standing["score"] == entry.score)
                });
                if !is_same || !scores {
                    verdict.wrong.push(format!("{event} was answered {result}, the ledger has {row:?}"));
                }
            }
        }
    }
    for (id, lost) in wanted {
        verdict.wrong.push(format!("acknowledged as {id} and not in the ledger: {lost:?}"));
    }
}

/// An answer with its parsed version.
struct Versioned<'a> {
    answer: &'a Answer,
    body: Value,
    batches: Vec<i64>,
}

fn read(answers: &[&Answer], changes: &[&Acknowledged], ledger: &Ledger, epoch: &str, verdict: &mut Verdict) {
    let mut versions: Vec<Versioned<'_>> =
        answers.iter().filter_map(|answer| versioned(answer, epoch, ledger)).collect();
    let with_body = answers.iter().filter(|answer| answer.body.is_some()).count();
    assert!(versions.len() * 20 >= with_body * 19, "{} of {with_body} answers have a known version", versions.len());
    versions.sort_by_key(|version| version.batches.iter().sum::<i64>());
    for pair in versions.windows(2) {
        let later = pair[0].batches.iter().zip(&pair[1].batches).all(|(earlier, later)| earlier <= later);
        assert!(later || is_cluster(), "no state can be between {:?} and {:?}", pair[0].batches, pair[1].batches);
    }
    let minimum = MinimumVersions::new(changes, ledger);
    let mut views: HashMap<String, View<'_>> = HashMap::new();
    let mut last = Vec::new();
    for version in &versions {
        let period = &version.body["period"];
        let name = period["name"].as_str().unwrap_or_default();
        let slice = Slice { starts_at: time(&period["starts_at"]), ends_at: time(&period["ends_at"]) };
        let view = views.entry(name.to_owned()).or_insert_with(|| View::new(ledger, slice));
        view.advance(&version.batches);
        let mut problems = compare(view, version);
        if ledger.periods.get(name).is_some_and(|known| *known != slice) || view.slice != slice {
            problems.push(format!("{slice:?} is not the period"));
        }
        problems.extend(minimum.missed(version.answer, &version.batches));
        if last != version.batches {
            last.clone_from(&version.batches);
            verdict.versions += 1;
        }
        *verdict.answers.entry(kind(&version.answer.question)).or_default() += 1;
        verdict.wrong.extend(problems.into_iter().map(|problem| {
            let Answer { question, instance, .. } = version.answer;
            format!("{} {name}, instance {instance}, {question:?}: {problem}\n  {}", ledger.slug, version.body)
        }));
    }
    let seen = LaterVersions::new(versions.iter().map(|version| (version.answer, version.batches.as_slice())));
    for answer in answers.iter().filter(|answer| answer.body.is_none()) {
        if !may_be_missing(answer, &minimum, &seen, ledger) {
            verdict.wrong.push(format!("{} has no {:?}, who had an entry all the time", ledger.slug, answer.question));
        }
        *verdict.answers.entry("no entry").or_default() += 1;
    }
}

/// Returns whether a player had no entry at some version between the answer's minimum and what
/// others saw after it.
fn may_be_missing(answer: &Answer, minimum: &MinimumVersions, seen: &LaterVersions, ledger: &Ledger) -> bool {
    let Question::Player { user, .. } = &answer.question else { return false };
    let Some(&user) = ledger.ids.get(user) else { return true };
    // The requested period is known only if the kind has one period, which has not ended since.
    let mut periods = ledger.periods.iter().filter(|(name, _)| name.split(':').next() == Some(answer.period));
    let (Some((_, slice)), None) = (periods.next(), periods.next()) else { return true };
    if !slice.holds(Utc::now()) {
        return true;
    }
    let rows: Vec<_> = ledger.rows.iter().filter(|row| row.row.user == user).collect();
    let Some(lane) = rows.first().map(|row| row.lane) else { return true };
    let (from, to) = (minimum.of(answer)[lane], seen.after(answer.done_at).map_or(i64::MAX, |batches| batches[lane]));
    let batches = rows.iter().map(|row| row.batch).filter(|batch| (from..=to).contains(batch));
    [from].into_iter().chain(batches).any(|batch| {
        let mut oracle = Oracle::new(ledger.rules);
        rows.iter().filter(|row| row.batch <= batch).for_each(|row| oracle.act(row.row));
        oracle.entry(user, *slice).is_none()
    })
}

fn versioned<'a>(answer: &'a Answer, epoch: &str, ledger: &Ledger) -> Option<Versioned<'a>> {
    let body = parsed(answer.body.as_deref()?);
    let parts: Vec<&str> = body["version"].as_str().expect("a version").split('.').collect();
    let [of, batches] = parts[..] else { panic!("{parts:?} is no version") };
    assert_eq!(of, epoch, "another epoch");
    let Some(batches) = ledger.versions.get(batches).cloned() else {
        // The snapshots of slow reads may be further apart than the known versions of a cluster.
        assert!(is_cluster(), "{parts:?} never was a version");
        return None;
    };
    Some(Versioned { answer, body, batches })
}

fn kind(question: &Question) -> &'static str {
    match question {
        Question::Player { around: 0, .. } => "player",
        Question::Player { .. } => "around",
        Question::Page { .. } => "page",
        Question::After { .. } => "cursor",
        Question::Chosen(_) => "chosen",
        Question::RankOf(_) => "rank of a score",
        Question::Top { .. } => "top",
        Question::Distribution => "distribution",
    }
}

/// Returns the errors of an answer about the ranking.
fn compare(view: &View<'_>, version: &Versioned<'_>) -> Vec<String> {
    let body = &version.body;
    let mut wrong = Vec::new();
    let mut expect = |what: &str, is_right: bool| {
        if !is_right {
            wrong.push(format!("{what} is wrong"));
        }
    };
    let players = view.order.len();
    expect("players", body["players"] == players);
    expect("board", body["board"] == view.ledger.slug.as_str());
    expect("stale", body.get("stale").is_none());
    let rows = |from: usize, limit: usize| &view.order[from.min(players)..(from + limit).min(players)];
    let listed = |found: &Value, keys: &[Key]| {
        let found = found.as_array().map_or(&[][..], Vec::as_slice);
        found.len() == keys.len() && found.iter().zip(keys).all(|(found, key)| is_row(view, found, key))
    };
    let page = |from: usize, limit: usize| {
        let keys = rows(from, limit);
        let is_last = keys.is_empty() || from + keys.len() == players;
        listed(&body["data"], keys) && body["next_cursor"].is_null() == is_last
    };
    match &version.answer.question {
        Question::Player { user, around } => {
            let Some(key) = key_of(view, user) else { return vec!["the player has no entry".to_owned()] };
            let (own, _) = view.above(&key);
            expect("player", is_row(view, body, &key));
            expect("above", listed(&body["above"], &view.order[own.saturating_sub(*around)..own]));
            expect("below", listed(&body["below"], rows(own + 1, *around)));
            let wanted = 100.0 * view.worse(&key) as f64 / players.saturating_sub(1).max(1) as f64;
            expect("percentile", body["percentile"].as_f64().is_some_and(|found| (found - wanted).abs() < 1e-9));
        }
        Question::Page { from, limit } => expect("page", page(from - 1, *limit)),
        Question::Top { limit } => expect("top", page(0, *limit)),
        Question::After { last, limit } => {
            let user = view.ledger.ids[last["user_id"].as_str().expect("a user")];
            let better = view.ledger.rules.better(number(&last["score"]));
            let tiebreak = last["tiebreak"].as_i64().map_or(0, |second| view.ledger.rules.better_tiebreak(second));
            let key: Key = (Reverse(better), Reverse(tiebreak), time(&last["reached_at"]), user);
            expect("page", page(view.order.partition_point(|other| *other <= key), *limit));
        }
        Question::Chosen(users) => {
            let mut keys: Vec<Key> = users.iter().filter_map(|user| key_of(view, user)).collect();
            keys.sort_unstable();
            expect("rows", listed(&body["data"], &keys));
            let shared = view.ledger.rules.ties == Ties::Shared;
            let places = body["data"].as_array().into_iter().flatten().map(|row| &row["local_rank"]);
            let wanted = keys
                .iter()
                .enumerate()
                .map(|(n, key)| if shared { keys.iter().filter(|other| other.0 < key.0).count() + 1 } else { n + 1 });
            expect("places", places.zip(wanted).all(|(found, wanted)| *found == wanted));
            let missing: Vec<&String> = users.iter().filter(|user| key_of(view, user).is_none()).collect();
            expect("missing", body["missing"] == json!(missing));
        }
        Question::RankOf(score) => {
            let better = Reverse(view.ledger.rules.better(*score));
            let shared = view.ledger.rules.ties == Ties::Shared;
            let above = view.order.partition_point(|key| if shared { key.0 < better } else { key.0 <= better });
            expect("rank", body["rank"] == above + 1 && body["score"] == *score);
        }
        Question::Distribution => {
            let place = |key: &Key| Place { position: 0, rank: 0, worse: 0, entry: view.entries[&key.3] };
            let places: Vec<Place> = view.order.iter().map(place).collect();
            let percentiles: Vec<Value> = tenth_percentiles(&places)
                .into_iter()
                .map(|(percentile, score)| json!({"percentile": percentile, "score": score}))
                .collect();
            expect("percentiles", body["percentiles"] == Value::from(percentiles));
            let bars: Vec<Value> = Oracle::new(view.ledger.rules)
                .histogram(&places, BARS)
                .into_iter()
                .map(|(from, to, players)| {
                    let score = |score: i128| i64::try_from(score).expect("a score");
                    json!({"from_score": score(from), "to_score": score(to), "players": players})
                })
                .collect();
            expect("histogram", body["histogram"] == Value::from(bars));
        }
    }
    wrong
}

/// Returns whether a row shows this key's player as the ranking has it.
fn is_row(view: &View<'_>, found: &Value, key: &Key) -> bool {
    let (own, better) = view.above(key);
    let (entry, user) = (&view.entries[&key.3], view.ledger.names[&key.3].as_str());
    let name = found["name"].as_str().unwrap_or_default();
    found["position"] == own + 1
        && found["rank"] == better + 1
        && found["user_id"] == user
        && (name == user || name.strip_prefix(user).is_some_and(|rest| rest.starts_with(" the ")))
        && found["score"] == entry.score
        && time(&found["reached_at"]) == entry.reached_at
        && found["tiebreak"].as_i64() == entry.second()
}

fn key_of(view: &View<'_>, user: &str) -> Option<Key> {
    view.entries.get(view.ledger.ids.get(user)?).map(|entry| view.key(entry))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn time(value: &Value) -> Option<DateTime<Utc>> {
    value.as_str().map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
}
