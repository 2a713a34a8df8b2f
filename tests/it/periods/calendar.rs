//! The boundaries of periods, compared with an oracle that steps through time minute by minute.
//!
//! The oracle uses the tz database of chrono-tz; PostgreSQL uses its own or the system's. The tests
//! use past dates only, where both agree. Before 1970 they use only zones that every build of the
//! database keeps separate.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike as _, Utc, Weekday,
};
use chrono_tz::Tz;
use rand::{RngExt as _, rngs::StdRng, seq::IndexedRandom as _};
use sqlx::{PgConnection, PgPool};

use crate::support::{TestDb, amount, random::seeded};

/// Days around unusual changes of the clock.
const TRAPS: &[(&str, &str)] = &[
    ("America/Havana", "2024-11-03"),      // midnight twice
    ("America/Havana", "2024-03-10"),      // midnight never
    ("Africa/Cairo", "2024-04-26"),        // midnight never
    ("Africa/Cairo", "2023-10-27"),        // 24:00 falls back to 23:00
    ("Asia/Beirut", "2023-03-26"),         // midnight never
    ("Asia/Beirut", "2022-10-30"),         // 24:00 falls back to 23:00
    ("America/Sao_Paulo", "2017-10-15"),   // midnight never
    ("America/Sao_Paulo", "2018-02-18"),   // 24:00 falls back to 23:00
    ("America/Toronto", "1919-03-31"),     // 23:30 leaps to 00:30
    ("Pacific/Apia", "2011-12-30"),        // the date does not exist
    ("Pacific/Kwajalein", "1993-08-21"),   // the date does not exist
    ("Pacific/Kwajalein", "1969-09-30"),   // 24:00 falls back to 01:00 of the same date
    ("Pacific/Kiritimati", "1994-12-31"),  // the date does not exist, at a year's end
    ("Asia/Manila", "1844-12-31"),         // the date does not exist, among odd seconds
    ("America/Juneau", "1867-10-18"),      // a date is lived through twice
    ("America/St_Johns", "2010-11-07"),    // 00:01 falls back to 23:01 of the day before
    ("America/St_Johns", "1988-10-30"),    // the same by two hours
    ("America/Phoenix", "1944-01-01"),     // the same at a year's end
    ("Antarctica/Casey", "2010-03-05"),    // 02:00 falls back to 23:00 of the day before
    ("Asia/Kathmandu", "1919-12-31"),      // local mean time, odd seconds
    ("Africa/Monrovia", "1972-01-07"),     // an offset of -0:44:30
    ("Australia/Lord_Howe", "2021-04-04"), // half an hour
    ("Europe/Berlin", "2024-12-30"),       // ISO week of the next year
    ("Europe/Berlin", "2021-01-03"),       // ISO week of the last year
    ("Europe/Berlin", "2020-12-31"),       // week 53
    ("Europe/Berlin", "2011-12-30"),       // exists here, and not in a session that is in Apia
    ("UTC", "2024-02-29"),
];

/// Those of the traps whose date does not exist.
const SKIPPED: &[(&str, &str)] = &[
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Pacific/Kiritimati", "1994-12-31"),
    ("Asia/Manila", "1844-12-31"),
];

/// Time zones of random days since 1970.
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "Europe/Lisbon",
    "America/New_York",
    "America/Havana",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Asuncion",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Amman",
    "Asia/Tehran",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Auckland",
];

/// Time zones of the session, which must not matter.
const SESSIONS: &[&str] = &["UTC", "Pacific/Apia", "America/St_Johns", "Asia/Kathmandu", "America/Havana"];

/// A period as the functions return it.
type Row = (String, DateTime<Utc>, DateTime<Utc>);

/// The hours of a zone around a date. An hour begins when the local clock exceeds all earlier
/// hours, and a day with its first hour.
struct Oracle {
    zone: Tz,
    starts: BTreeMap<NaiveDateTime, DateTime<Utc>>,
}

impl Oracle {
    fn new(zone: Tz, centre: NaiveDate, days: u64) -> Self {
        let hour_at = |at: DateTime<Utc>| {
            let clock = at.with_timezone(&zone).naive_local();
            clock.date().and_hms_opt(clock.hour(), 0, 0).expect("an hour")
        };
        let second = TimeDelta::seconds(1);
        let mut at = (centre - Days::new(days)).and_time(NaiveTime::MIN).and_utc();
        let last = at + TimeDelta::days(2 * i64::try_from(days).expect("days"));
        let mut latest = hour_at(at);
        let mut starts = BTreeMap::new();
        while at < last {
            at += TimeDelta::minutes(1);
            if hour_at(at) <= latest {
                continue;
            }
            let mut start = at;
            while hour_at(start - second) > latest {
                start -= second;
            }
            // All hours up to the new one begin here; the skipped ones are empty.
            while latest < hour_at(start) {
                latest += TimeDelta::hours(1);
                starts.insert(latest, start);
            }
        }
        Self { zone, starts }
    }

    /// Returns the start of an hour, which may be far away.
    fn start(&self, hour: NaiveDateTime) -> DateTime<Utc> {
        let far_away = || Self::new(self.zone, hour.date(), 2).starts[&hour];
        self.starts.get(&hour).copied().unwrap_or_else(far_away)
    }

    /// Returns the hour that contains `at`: the last one that has begun.
    fn hour(&self, at: DateTime<Utc>) -> NaiveDateTime {
        *self.starts.iter().rfind(|(_, start)| **start <= at).expect("an hour within the range").0
    }

    /// Returns the period of this kind whose first hour is `first`.
    fn period(&self, kind: &str, first: NaiveDateTime) -> Row {
        let (label, next) = match kind {
            "hour" => (first.format("%Y-%m-%dT%H").to_string(), first + TimeDelta::hours(1)),
            "day" => (first.date().to_string(), first + Days::new(1)),
            "week" => (first.date().to_string(), first + Days::new(7)),
            "month" => (first.format("%Y-%m").to_string(), first + Months::new(1)),
            "quarter" => (format!("{}-Q{}", first.year(), first.month0() / 3 + 1), first + Months::new(3)),
            _ => (first.year().to_string(), first + Months::new(12)),
        };
        (label, self.start(first), self.start(next))
    }
}

const KINDS: [&str; 6] = ["hour", "day", "week", "month", "quarter", "year"];

fn first_hour(kind: &str, hour: NaiveDateTime) -> NaiveDateTime {
    let day = hour.date();
    let first_of = |month: u32| NaiveDate::from_ymd_opt(day.year(), month, 1).expect("a first of the month");
    let first = match kind {
        "hour" => return hour,
        "day" => day,
        "week" => day.week(Weekday::Mon).first_day(),
        "month" => first_of(day.month()),
        "quarter" => first_of(day.month0() / 3 * 3 + 1),
        _ => first_of(1),
    };
    first.and_time(NaiveTime::MIN)
}

fn date(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

/// Compares all functions with the oracle around `centre`.
async fn check(connection: &mut PgConnection, zone: &str, centre: NaiveDate, rng: &mut StdRng) {
    let oracle = Oracle::new(zone.parse().expect("a zone that chrono-tz knows"), centre, 10);
    let hours: Vec<NaiveDateTime> = oracle.starts.keys().copied().collect();
    let starts: Vec<DateTime<Utc>> = sqlx::query_scalar(
        "SELECT centile.local_start(h, $1) FROM unnest($2::timestamp[]) WITH ORDINALITY AS x (h, n) ORDER BY n",
    )
    .bind(zone)
    .bind(&hours)
    .fetch_all(&mut *connection)
    .await
    .expect("local_start");
    for (hour, start) in hours.iter().zip(&starts) {
        assert_eq!(*start, oracle.start(*hour), "local_start of {hour} in {zone}");
    }

    // Both sides of each boundary, and instants in between.
    let near = |hour: &&NaiveDateTime| hour.date().signed_duration_since(centre).abs() <= TimeDelta::days(2);
    let mut instants = Vec::new();
    for hour in hours.iter().filter(near) {
        let start = oracle.start(*hour);
        let within = TimeDelta::microseconds(rng.random_range(0..3_600_000_000));
        let microsecond = TimeDelta::microseconds(1);
        instants.extend([start - microsecond, start, start + microsecond, start + within]);
    }

    for kind in KINDS {
        let held = rows(connection, "centile.period_at", kind, &instants, zone).await;
        let before = rows(connection, "centile.period_before", kind, &instants, zone).await;
        assert_eq!((held.len(), before.len()), (instants.len(), instants.len()), "{kind}s in {zone} around {centre}");
        let mut known: BTreeMap<NaiveDateTime, Row> = BTreeMap::new();
        let mut wanted = |at: DateTime<Utc>| {
            let first = first_hour(kind, oracle.hour(at));
            known.entry(first).or_insert_with(|| oracle.period(kind, first)).clone()
        };
        for ((at, held), before) in instants.iter().zip(&held).zip(&before) {
            assert_eq!(*held, wanted(*at), "period_at {kind} {at} in {zone}");
            assert!(held.1 <= *at && *at < held.2, "{kind} {at} in {zone}");
            let last_before = held.1 - TimeDelta::microseconds(1);
            if oracle.starts.values().next().is_some_and(|first| *first <= last_before) {
                assert_eq!(*before, wanted(last_before), "period_before {kind} {at} in {zone}");
            }
            assert_eq!(before.2, held.1, "no gap before {kind} {at} in {zone}");
        }
        let firsts: BTreeSet<NaiveDateTime> = hours.iter().filter(near).map(|hour| first_hour(kind, *hour)).collect();
        for first in firsts {
            check_label(connection, &oracle, kind, first).await;
        }
    }
    for length in WINDOWS {
        check_window(connection, &oracle, length, &instants).await;
    }
}

/// Lengths of rolling windows, with their days.
const WINDOWS: [(&str, u64); 4] = [("2d", 2), ("7d", 7), ("366d", 366), ("24h", 0)];

/// Label, start, end, and the instant from which the window is current.
type Window = (String, DateTime<Utc>, DateTime<Utc>, DateTime<Utc>);

/// `rolling_window` ends with the day or hour that holds an instant.
async fn check_window(
    connection: &mut PgConnection,
    oracle: &Oracle,
    (length, days): (&str, u64),
    instants: &[DateTime<Utc>],
) {
    let found: Vec<Window> = sqlx::query_as(
        "SELECT w.label, w.starts_at, w.ends_at, w.current_from FROM unnest($2::timestamptz[]) WITH ORDINALITY AS x (at, n)
         CROSS JOIN LATERAL centile.rolling_window($1, x.at, $3) AS w ORDER BY n",
    )
    .bind(length)
    .bind(instants)
    .bind(oracle.zone.name())
    .fetch_all(connection)
    .await
    .expect("rolling_window");
    let mut known: BTreeMap<NaiveDateTime, (Row, DateTime<Utc>)> = BTreeMap::new();
    let wanted = instants.iter().map(|at| {
        let kind = if days == 0 { "hour" } else { "day" };
        let first = first_hour(kind, oracle.hour(*at));
        let ((label, current_from, ends_at), starts_at) = known
            .entry(first)
            .or_insert_with(|| {
                let last = oracle.period(kind, first);
                let starts_at = match days.checked_sub(1) {
                    None => last.2 - TimeDelta::hours(24),
                    Some(before) => oracle.start(first - Days::new(before)),
                };
                (last, starts_at)
            })
            .clone();
        (format!("{length}-{label}"), starts_at, ends_at, current_from)
    });
    assert_eq!(found, wanted.collect::<Vec<_>>(), "{length} in {}", oracle.zone);
}

/// `period_named` finds a period by its label, and only if it exists.
async fn check_label(connection: &mut PgConnection, oracle: &Oracle, kind: &str, first: NaiveDateTime) {
    let expected = oracle.period(kind, first);
    let found: Option<Row> = sqlx::query_as("SELECT label, starts_at, ends_at FROM centile.period_named($1, $2, $3)")
        .bind(kind)
        .bind(&expected.0)
        .bind(oracle.zone.name())
        .fetch_optional(connection)
        .await
        .expect("period_named");
    let exists = expected.1 < expected.2;
    assert_eq!(found, exists.then_some(expected), "period_named {kind} {first} in {}", oracle.zone);
}

/// Returns one row per instant from `period_at` or `period_before`, in order.
async fn rows(connection: &mut PgConnection, name: &str, kind: &str, at: &[DateTime<Utc>], zone: &str) -> Vec<Row> {
    let query = format!(
        "SELECT p.label, p.starts_at, p.ends_at FROM unnest($2::timestamptz[]) WITH ORDINALITY AS x (at, n)
         CROSS JOIN LATERAL {name}($1, x.at, $3) AS p ORDER BY n"
    );
    sqlx::query_as(sqlx::AssertSqlSafe(query))
        .bind(kind)
        .bind(at)
        .bind(zone)
        .fetch_all(connection)
        .await
        .expect("a period function")
}

async fn compare_with_oracle(pool: &PgPool) {
    let mut rng = seeded();
    let mut cases: Vec<(&str, NaiveDate)> = TRAPS.iter().map(|(zone, day)| (*zone, date(day))).collect();
    let first = date("1970-06-01");
    let days = date("2024-12-01").signed_duration_since(first).num_days().unsigned_abs();
    // Each day of a zone takes thousands of calls. The quick run has all traps, and some zones without.
    for zone in ZONES.sample(&mut rng, amount(3, ZONES.len())).collect::<Vec<_>>() {
        cases.extend((0..amount(1, 2)).map(|_| (*zone, first + Days::new(rng.random_range(0..days)))));
    }

    let mut connection = pool.acquire().await.expect("a connection").detach();
    for ((zone, day), session) in cases.into_iter().zip(SESSIONS.iter().cycle()) {
        sqlx::query("SELECT set_config('TimeZone', $1, false)")
            .bind(session)
            .execute(&mut connection)
            .await
            .expect("a session's time zone");
        check(&mut connection, zone, day, &mut rng).await;
    }
}

#[tokio::test]
async fn periods_begin_where_the_oracle_expects() {
    let database = TestDb::new().await;
    compare_with_oracle(&database.pool().await).await;
}

#[tokio::test]
async fn periods_do_not_depend_on_the_session_time_zone() {
    let database = TestDb::new().await;
    let mut connection = database.pool().await.acquire().await.expect("a connection").detach();
    for session in SESSIONS.iter().chain(&["Asia/Beirut", "<odd>+3:17"]) {
        for statement in
            ["SELECT set_config('TimeZone', $1, false)", "SELECT set_config('DateStyle', 'SQL, DMY', $1 = '')"]
        {
            sqlx::query(statement).bind(session).execute(&mut connection).await.expect("a setting");
        }
        for (zone, day) in TRAPS {
            let label: String = sqlx::query_scalar(
                "SELECT label FROM centile.period_at('day', centile.local_start($1::text::date, $2), $2)",
            )
            .bind(day.replace('-', ""))
            .bind(zone)
            .fetch_one(&mut connection)
            .await
            .expect("a day");
            let skipped = u64::from(SKIPPED.contains(&(zone, day)));
            let expected = date(day) + Days::new(skipped);
            assert_eq!(label, expected.to_string(), "{zone}, session in {session}");
        }
    }
}

#[tokio::test]
async fn an_invalid_period_has_no_row() {
    let database = TestDb::new().await;
    let pool = database.pool().await;
    let count = |function: &'static str, kind: &'static str, value: &'static str| {
        let query = format!(
            "SELECT count(*) FROM centile.{function}($1, $2::text::{}, 'Pacific/Apia')",
            match function {
                "period_named" => "text",
                _ => "timestamptz",
            }
        );
        let pool = &pool;
        async move {
            let rows =
                sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(query)).bind(kind).bind(value).fetch_one(pool).await;
            rows.expect("a count")
        }
    };
    for (kind, label) in [
        ("day", "2011-12-30"),
        ("day", "2023-02-29"),
        ("day", "2024-1-15"),
        ("day", "2024-01"),
        ("day", "0000-01-01"),
        ("day", "2024-01-00"),
        ("day", "2024-01-99"),
        ("day", "2024-01-15\n"),
        ("day", ""),
        ("day", "previous"),
        ("week", "2024-01-16"),
        ("week", "2024-W03"),
        ("month", "2024-13"),
        ("month", "2024-01-01"),
        ("month", "24-01"),
        ("hour", "2024-01-15"),
        ("hour", "2024-01-15T24"),
        ("hour", "2011-12-30T12"),
        ("quarter", "2024-Q5"),
        ("quarter", "2024-01"),
        ("year", "2024-Q1"),
        ("year", "0000"),
        ("all_time", ""),
        ("all_time", "2024"),
        ("season", "all_time"),
        ("Day", "2024-01-15"),
    ] {
        assert_eq!(count("period_named", kind, label).await, 0, "{kind}:{label:?}");
    }
    for (kind, label) in [
        ("day", "2011-12-31"),
        ("day", "2024-02-29"),
        ("week", "2024-01-15"),
        ("month", "2024-01"),
        ("hour", "2024-01-15T23"),
        ("quarter", "2024-Q4"),
        ("year", "2024"),
        ("all_time", "all_time"),
    ] {
        assert_eq!(count("period_named", kind, label).await, 1, "{kind}:{label}");
    }
    for kind in KINDS {
        assert_eq!(count("period_at", kind, "infinity").await, 0, "{kind}");
        assert_eq!(count("period_before", kind, "-infinity").await, 0, "{kind}");
    }
    assert_eq!(count("period_at", "season", "2024-01-15Z").await, 0);
    assert_eq!(count("period_at", "all_time", "2024-01-15Z").await, 1);
    assert_eq!(count("period_before", "all_time", "2024-01-15Z").await, 0);
}

/// Kind, label and bounds of each opened period.
type Opened = Vec<(String, String, DateTime<Utc>, DateTime<Utc>)>;

/// Opens the periods that contain these times, with all boards in a zone.
async fn open(pool: &PgPool, zone: &str, times: &[&str]) {
    let zoned = "UPDATE centile_store.boards SET time_zone = $1";
    sqlx::query(zoned).bind(zone).execute(pool).await.unwrap();
    let times: Vec<DateTime<Utc>> = times.iter().map(|time| time.parse().unwrap()).collect();
    for time in times {
        let opened = "SELECT centile_store.open_periods(1, ARRAY[$1::timestamptz])";
        sqlx::query(opened).bind(time).execute(pool).await.unwrap();
        let again: i32 = sqlx::query_scalar(opened).bind(time).fetch_one(pool).await.unwrap();
        assert_eq!(again, 0, "{time} in {zone}");
    }
}

async fn opened(pool: &PgPool) -> Opened {
    let statement = "SELECT kind, label, starts_at, ends_at FROM centile_store.periods WHERE kind <> 'all_time' ORDER BY kind, starts_at";
    sqlx::query_as(statement).fetch_all(pool).await.unwrap()
}

fn bounds(periods: &Opened, kind: &str, label: &str) -> (String, String) {
    let found = periods.iter().find(|period| period.0 == kind && period.1 == label).expect(label);
    (found.2.to_rfc3339(), found.3.to_rfc3339())
}

/// Returns bounds at two full hours.
fn between(from: &str, until: &str) -> (String, String) {
    (format!("{from}:00:00+00:00"), format!("{until}:00:00+00:00"))
}

#[tokio::test]
async fn time_between_two_periods_belongs_to_the_second() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main')").await;
    let pool = db.pool().await;
    open(&pool, "UTC", &["2024-01-17T12:00:00Z"]).await;
    // In the new zone each period ends two hours later, and the next one is opened from its middle.
    open(&pool, "Etc/GMT+2", &["2024-01-18T12:00:00Z", "2024-01-22T12:00:00Z", "2024-02-01T12:00:00Z"]).await;
    let periods = opened(&pool).await;
    assert_eq!(bounds(&periods, "day", "2024-01-18"), between("2024-01-18T00", "2024-01-19T02"));
    assert_eq!(bounds(&periods, "week", "2024-01-22"), between("2024-01-22T00", "2024-01-29T02"));
    assert_eq!(bounds(&periods, "month", "2024-02"), between("2024-02-01T00", "2024-03-01T02"));
}

/// Countries change their clocks at short notice, so the time zone database may move a boundary
/// while a period is open.
#[tokio::test]
async fn every_instant_has_one_period_after_a_time_zone_change() {
    let db = TestDb::new().await;
    db.execute("SELECT centile.create_board('main')").await;
    let pool = db.pool().await;
    open(&pool, "UTC", &["2024-01-17T12:00:00Z"]).await;
    // Every period begins two hours later than before.
    open(&pool, "Etc/GMT+2", &["2024-01-18T01:00:00Z", "2024-01-22T01:00:00Z", "2024-02-01T01:00:00Z"]).await;
    // Then three hours earlier.
    open(&pool, "Etc/GMT-3", &["2024-01-16T22:00:00Z", "2024-01-14T22:00:00Z", "2023-12-31T22:00:00Z"]).await;

    let periods = opened(&pool).await;
    for (one, next) in periods.iter().zip(&periods[1..]).filter(|(one, next)| one.0 == next.0) {
        assert!(one.3 <= next.2 && one.1 < next.1, "{one:?} before {next:?}");
    }
    let bounds = |kind: &str, label: &str| bounds(&periods, kind, label);
    assert_eq!(bounds("day", "2024-01-17"), between("2024-01-17T00", "2024-01-18T00"), "as opened");
    assert_eq!(bounds("day", "2024-01-18"), between("2024-01-18T00", "2024-01-19T02"), "from the end of the last one");
    assert_eq!(bounds("day", "2024-01-16"), between("2024-01-15T21", "2024-01-17T00"), "to the start of the next one");
    assert_eq!(bounds("week", "2024-01-15"), between("2024-01-15T00", "2024-01-22T00"), "as opened");
    assert_eq!(bounds("week", "2024-01-22"), between("2024-01-22T00", "2024-01-29T02"), "from the end of the last one");
    assert_eq!(bounds("week", "2024-01-08"), between("2024-01-07T21", "2024-01-15T00"), "to the start of the next one");
    assert_eq!(bounds("month", "2024-01"), between("2024-01-01T00", "2024-02-01T00"), "as opened");
    assert_eq!(bounds("month", "2024-02"), between("2024-02-01T00", "2024-03-01T02"), "from the end of the last one");
    assert_eq!(bounds("month", "2023-12"), between("2023-11-30T21", "2024-01-01T00"), "to the start of the next one");
}
