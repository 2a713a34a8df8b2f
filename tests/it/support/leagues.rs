//! Plays weeks of a league through `centile import`, closes them with `centile close --due`, which is
//! killed at random moments, and compares every member with a model that knows only the scores it sent.
//!
//! The model takes each member's cohort from `centile.league_history`. It derives everything else.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use sqlx::{AssertSqlSafe, PgPool, query_as, query_scalar};

use super::{Files, TestDb, import, run, spawn, wait::until_blocking};

const LANES: usize = 2;
const DIVISIONS: [&str; 4] = ["bronze", "silver", "gold", "diamond"];
/// Monday, January 1, 2024, in seconds.
const FIRST_WEEK: i64 = 1_704_067_200;
const WEEK: i64 = 7 * 24 * 3_600;

/// The extent and the rules of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    pub weeks: usize,
    /// Players of each week; a fifth of them changes from week to week.
    pub players: usize,
    /// Kills of the closing process, in all weeks together.
    pub kills: usize,
    pub size: usize,
    pub promote: usize,
    pub relegate: usize,
    pub by_form: bool,
    pub relegates_idle: bool,
    pub ties_up: bool,
}

/// A row of the history: user, cohort, division, rank, score and next division.
type Member = (String, Option<i64>, String, Option<i32>, Option<i64>, String);

/// A player in the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Player {
    division: usize,
    /// The band of the week after `week`.
    band: usize,
    week: usize,
}

/// Each player's score in a week, and the time of the last event; `None` for a banned player.
type Scores = HashMap<usize, Option<(i64, i64)>>;

impl Simulation {
    /// Runs all weeks. Returns the number of rows compared.
    pub async fn run(&self, seed: u64) -> usize {
        eprintln!("seed {seed}: {self:?}");
        let mut random = StdRng::seed_from_u64(seed);
        let db = TestDb::new().await;
        let pool = db.pool().await;
        db.execute(&format!("SELECT centile.create_board('arena', '{{\"periods\": [\"week\"], \"lanes\": {LANES}}}')"))
            .await;
        self.create(&db).await;
        let (mut model, mut active, mut rested, mut known) = (HashMap::new(), Vec::new(), Vec::new(), 0);
        let (mut sent, mut compared, mut usual) = (BTreeMap::<usize, Scores>::new(), 0, Duration::from_millis(200));
        for week in 0..self.weeks {
            // A fifth rests. Half of those in their places are new.
            active.shuffle(&mut random);
            let resting = active.split_off(active.len() - active.len() / 5);
            rested.shuffle(&mut random);
            let returning = rested.split_off(rested.len() - rested.len().min(resting.len() / 2));
            active.extend(returning);
            rested.extend(resting);
            active.extend(known..known + self.players - active.len());
            known = known.max(active.iter().max().map_or(0, |last| last + 1));
            sent.insert(week, play(&db, week, &active, &mut random));
            // A player who is banned before the cut-off has no rank.
            let banned = active.swap_remove(random.random_range(0..active.len()));
            run(&db, &["user", "ban", &format!("p{banned}"), "--by", "dora"]).well();
            for scores in sent.values_mut() {
                scores.entry(banned).and_modify(|score| *score = None);
            }
            // In every third week, the closing is late: players of the next week wait.
            if week % 3 == 1 && week + 1 < self.weeks {
                continue;
            }
            let kills = (self.kills * sent.len()).div_ceil(self.weeks);
            for _ in 0..kills {
                let mut child = spawn(db.url(), &["close", "--due"]);
                tokio::time::sleep(usual.mul_f64(random.random_range(0.0..1.2))).await;
                child.kill().unwrap();
                child.wait().unwrap();
            }
            let began = Instant::now();
            until_blocking("the weeks are closed", || {
                !run(&db, &["close", "--due"]).well().contains("another process")
            });
            usual = began.elapsed();
            for (week, scores) in std::mem::take(&mut sent) {
                compared += self.compare(&pool, week, &scores, &mut model).await;
            }
        }
        compared
    }

    /// Creates the league, and lets it begin in the first week.
    async fn create(&self, db: &TestDb) {
        let rule = |is: bool, yes: &'static str, no: &'static str| if is { yes } else { no };
        let numbers = [self.size, self.promote, self.relegate].map(|number| number.to_string());
        run(
            db,
            &[
                "league",
                "create",
                "arena-league",
                "--board",
                "arena",
                "--period",
                "week",
                "--divisions",
                &DIVISIONS.join(","),
                "--size",
                &numbers[0],
                "--promote",
                &numbers[1],
                "--relegate",
                &numbers[2],
                "--fill",
                rule(self.by_form, "form", "arrival"),
                "--idle",
                rule(self.relegates_idle, "relegate", "leave"),
                "--ties",
                rule(self.ties_up, "up", "down"),
                "--by",
                "dora",
            ],
        )
        .well();
        db.execute("UPDATE centile_store.leagues SET starts_at = '2024-01-01Z', next_from = '2024-01-01Z'").await;
    }

    /// Compares the history of a week with the model, and moves the model to the next week.
    async fn compare(&self, pool: &PgPool, week: usize, scores: &Scores, model: &mut HashMap<usize, Player>) -> usize {
        let start = chrono::DateTime::from_timestamp(FIRST_WEEK + WEEK * i64::try_from(week).unwrap(), 0).unwrap();
        let label = start.format("week:%Y-%m-%d").to_string();
        let rows: Vec<Member> = query_as(
            "SELECT user_id, cohort_id, division, rank, score, next_division FROM centile.league_history WHERE period = $1",
        )
        .bind(&label)
        .fetch_all(pool)
        .await
        .unwrap();
        let place = |name: &str| DIVISIONS.iter().position(|division| *division == name).unwrap();
        let number = |user: &str| user[1..].parse::<usize>().unwrap();
        let (in_cohorts, idle): (Vec<&Member>, Vec<&Member>) = rows.iter().partition(|row| row.1.is_some());
        assert_eq!(in_cohorts.len(), scores.len(), "{label}: members are those who scored");
        let mut cohorts: BTreeMap<i64, Vec<&Member>> = BTreeMap::new();
        for row in &in_cohorts {
            cohorts.entry(row.1.unwrap()).or_default().push(row);
        }
        let old = model.clone();
        let band = |user: usize| {
            old.get(&user).filter(|player| self.by_form && player.week + 1 == week).map_or(0, |player| player.band)
        };
        // Cohorts: one division and band, at most `size` members, few that are not full.
        let mut open: HashMap<(usize, usize), usize> = HashMap::new();
        for (cohort, members) in &cohorts {
            let of =
                |row: &&Member| (old.get(&number(&row.0)).map_or(0, |player| player.division), band(number(&row.0)));
            let group = of(&members[0]);
            assert!(members.len() <= self.size, "{label}: cohort {cohort} has {}", members.len());
            assert!(members.iter().all(|row| of(row) == group), "{label}: {members:?}");
            assert!(members.iter().all(|row| place(&row.2) == group.0), "{label}: {members:?} in {group:?}");
            if members.len() < self.size {
                *open.entry(group).or_default() += 1;
            }
            // Ranks and moves.
            let own = |row: &Member| scores[&number(&row.0)];
            let ranked = members.iter().filter(|row| own(row).is_some()).count();
            for row in members {
                let score = own(row).map(|(score, _)| score);
                let better = members
                    .iter()
                    .filter(|other| own(other).is_some_and(|(other, _)| score.is_some_and(|own| other > own)))
                    .count();
                let equal = members
                    .iter()
                    .filter(|other| score.is_some() && own(other).map(|(score, _)| score) == score)
                    .count();
                let (division, line) = (group.0, if self.ties_up { better + 1 } else { better + equal });
                let next = if score.is_none() {
                    division - usize::from(self.relegates_idle && division > 0)
                } else if line <= self.promote && division + 1 < DIVISIONS.len() {
                    division + 1
                } else if line + self.relegate > ranked && division > 0 {
                    division - 1
                } else {
                    division
                };
                let wanted = (score.map(|_| i32::try_from(better + 1).unwrap()), score, DIVISIONS[next]);
                assert_eq!((row.3, row.4, &*row.5), wanted, "{label}: {row:?} in {members:?}");
                model.insert(number(&row.0), Player { division: next, band: 0, week });
            }
        }
        assert!(open.values().all(|open| *open <= LANES), "{label}: cohorts that are not full: {open:?}");
        // Bands: the ranked players of a division in their order, cut into equal parts.
        for division in 0..DIVISIONS.len() {
            let mut ranked: Vec<(i64, i64, usize)> = in_cohorts
                .iter()
                .filter(|row| place(&row.2) == division)
                .filter_map(|row| scores[&number(&row.0)].map(|(score, at)| (score, -at, number(&row.0))))
                .collect();
            ranked.sort_unstable();
            let bands = (ranked.len() / self.size).clamp(1, 10);
            for (better_than, (_, _, user)) in ranked.iter().enumerate() {
                model.get_mut(user).unwrap().band = better_than * bands / ranked.len();
            }
        }
        // The others.
        let mut relegated = 0;
        for (user, player) in model.iter_mut().filter(|(user, _)| !scores.contains_key(user)) {
            if self.relegates_idle && player.division > 0 {
                let row = idle
                    .iter()
                    .find(|row| number(&row.0) == *user)
                    .unwrap_or_else(|| panic!("{label}: no row of p{user}"));
                let wanted = (DIVISIONS[player.division], None, None, DIVISIONS[player.division - 1]);
                assert_eq!((&*row.2, row.3, row.4, &*row.5), wanted, "{label}: {row:?}");
                *player = Player { division: player.division - 1, band: 0, week };
                relegated += 1;
            }
        }
        assert_eq!(idle.len(), relegated, "{label}: idle players");
        rows.len()
    }
}

/// Imports scores of a week, one or two a player, and returns the sums and last times.
fn play(db: &TestDb, week: usize, players: &[usize], random: &mut StdRng) -> Scores {
    let mut events: Vec<usize> = players.iter().flat_map(|player| vec![*player; random.random_range(1..=2)]).collect();
    events.shuffle(random);
    let (mut scores, mut text) = (Scores::new(), "user_id,points,occurred_at\n".to_owned());
    for (place, player) in events.iter().enumerate() {
        let points = random.random_range(1..=40);
        // Each event has a time of its own, in milliseconds.
        let at = 1_000 * (FIRST_WEEK + WEEK * i64::try_from(week).unwrap())
            + 1_000 * WEEK * i64::try_from(place).unwrap() / i64::try_from(events.len()).unwrap();
        let shown = chrono::DateTime::from_timestamp_millis(at).unwrap().format("%Y-%m-%dT%H:%M:%S%.3fZ");
        writeln!(text, "p{player},{points},{shown}").unwrap();
        let score = scores.entry(*player).or_default().map_or(0, |(score, _)| score);
        scores.insert(*player, Some((score + points, at)));
    }
    let files = Files::new();
    let imported = import(db, &files.write("week.csv", text), "arena", &[]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    scores
}

/// Ends the current periods of a kind now. Their labels become dates of the past, so that the next
/// periods can have the current ones.
pub async fn end_periods(db: &TestDb, kind: &str) {
    db.execute(&format!(
        "SELECT centile_store.lock_structure(b.id, true) FROM centile_store.boards b;
         UPDATE centile_store.periods SET ends_at = clock_timestamp(), label = to_char('2001-01-01'::timestamp + 7 * interval '1 day' * id::integer, 'YYYY-MM-DD')
         WHERE kind = '{kind}' AND state = 'open' AND ends_at > now()"
    ))
    .await;
}

/// Fails unless cohorts have as many members as they count, and at most `size`.
pub async fn cohorts_are_sound(pool: &PgPool) {
    let wrong: i64 = query_scalar(AssertSqlSafe(
        "SELECT count(*) FROM centile_store.league_cohorts c JOIN centile_store.leagues l ON l.id = c.league_id
         WHERE c.members <> (SELECT count(*) FROM centile_store.league_members m WHERE m.cohort_id = c.id) OR c.members > l.size",
    ))
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(wrong, 0);
}
