//! The views for DBAs, in cases that their examples do not cover: days in zones with clock changes,
//! a period from due to dropped, bounds of buckets, voided scores.

use rand::{SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};
use sqlx::{PgConnection, query, query_as, query_scalar, raw_sql};

use crate::support::{TestDb, amount, boundary::until_no_hour_ends, layout, random::seeded};

/// Time zones, each with a day near an unusual change of its clock.
const TRAPS: [(&str, &str); 8] = [
    ("America/Havana", "2024-11-03"),      // midnight twice
    ("Africa/Cairo", "2024-04-26"),        // midnight never
    ("Africa/Cairo", "2023-10-27"),        // 24:00 falls back to 23:00
    ("America/St_Johns", "2010-11-07"),    // 00:01 falls back to 23:01 of the day before
    ("Pacific/Apia", "2011-12-30"),        // the date does not exist
    ("Antarctica/Casey", "2010-03-05"),    // 02:00 falls back to 23:00 of the day before
    ("Australia/Lord_Howe", "2021-04-04"), // half an hour
    ("Pacific/Kiritimati", "2024-02-29"),  // 14 hours ahead
];

/// Creates an empty board with one lane; returns a connection.
async fn board(db: &TestDb, slug: &str, mut rules: Value) -> PgConnection {
    let mut connection = db.pool().await.acquire().await.unwrap().detach();
    rules["lanes"] = json!(1);
    query("SELECT centile.create_board($1, $2)").bind(slug).bind(rules).execute(&mut connection).await.unwrap();
    connection
}

#[tokio::test]
async fn every_event_is_on_the_day_of_its_period() {
    let db = TestDb::new().await;
    // Each zone takes a second. Over many runs, the quick one covers all.
    let chosen = TRAPS.sample(&mut seeded(), amount(3, TRAPS.len()));
    for (place, &(zone, date)) in chosen.enumerate() {
        let mut connection = board(&db, &format!("b{place}"), json!({"time_zone": zone})).await;
        // The session's own zone must not matter.
        raw_sql("SET TimeZone = 'America/St_Johns'").execute(&mut connection).await.unwrap();
        query("SELECT centile.ensure_ledger_months($1::timestamptz - interval '5 days', $1::timestamptz + interval '5 days')")
            .bind(date.parse::<chrono::NaiveDate>().unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc())
            .execute(&mut connection)
            .await
            .unwrap();
        // An event every seven minutes and on both sides of each hour, for six days.
        let events = query(
            "INSERT INTO centile_store.score_transactions (board_id, user_id, points, occurred_at, lane, batch)
             SELECT b.board_id, u.id, 1, t.at, 0, 1
             FROM centile.boards b,
                  (SELECT id FROM centile_store.users WHERE external_id = 'ann') u,
                  (SELECT generate_series($1::timestamptz - interval '3 days', $1 + interval '3 days', interval '7 minutes')
                   UNION SELECT generate_series($1::timestamptz - interval '3 days', $1 + interval '3 days', interval '30 minutes')
                   UNION SELECT generate_series($1::timestamptz - interval '3 days', $1 + interval '3 days', interval '30 minutes') - interval '1 microsecond') AS t (at)
             WHERE b.slug = $2",
        );
        query("SELECT centile.ensure_users('{ann}')").execute(&mut connection).await.unwrap();
        let noon = date.parse::<chrono::NaiveDate>().unwrap().and_hms_opt(12, 0, 0).unwrap().and_utc();
        let made = events.bind(noon).bind(format!("b{place}")).execute(&mut connection).await.unwrap().rows_affected();
        let wanted: Vec<(String, i64)> = query_as(
            "SELECT p.label, count(*) FROM centile.score_history h, centile.period_at('day', h.occurred_at, $2) p
             WHERE h.board = $1 GROUP BY p.label ORDER BY p.label",
        )
        .bind(format!("b{place}"))
        .bind(zone)
        .fetch_all(&mut connection)
        .await
        .unwrap();
        let found: Vec<(String, i64)> =
            query_as("SELECT day::text, events FROM centile.daily_points WHERE board = $1 ORDER BY day")
                .bind(format!("b{place}"))
                .fetch_all(&mut connection)
                .await
                .unwrap();
        assert_eq!(found, wanted, "{zone} around {date}");
        assert_eq!(found.iter().map(|(_, events)| events.unsigned_abs()).sum::<u64>(), made, "{zone} around {date}");
    }
}

#[tokio::test]
async fn voided_scores_do_not_count_as_activity() {
    let db = TestDb::new().await;
    let mut connection = board(&db, "main", json!({})).await;
    for (user, points) in [("ann", 5), ("ann", 7), ("bob", 11)] {
        query("SELECT testing.submit_score('main', $1, $2)")
            .bind(user)
            .bind(points)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    query("SELECT centile.void_score('main', transaction_id) FROM centile.score_history WHERE points IN (7, 11)")
        .execute(&mut connection)
        .await
        .unwrap();
    let activity: Vec<(i64, i64, String)> =
        query_as("SELECT players, events, points::text FROM centile.daily_activity")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert_eq!(activity, [(1, 1, "5".to_owned())]);
}

/// Returns last week's players with scores.
async fn last_week(connection: &mut PgConnection) -> Vec<(i64, String, i64)> {
    let rows = "SELECT rank, user_id, score FROM centile.ranking('main', 'week:previous') ORDER BY position";
    query_as(rows).fetch_all(connection).await.unwrap()
}

/// Returns the row of last week in `periods`, and `upkeep`, as text.
async fn status(connection: &mut PgConnection) -> String {
    query_scalar(
        "SELECT concat_ws(' ', p.state, p.players, coalesce(p.differences::text, '-'), coalesce(p.agrees::text, '-'), p.needs_refresh,
                          coalesce(p.archive LIKE 'centile_archive.main_week_%', false),
                          p.last_event_at = p.starts_at + interval '5 hours', u.periods_due, u.closings_unfinished,
                          u.archive_differences, u.archives_to_refresh, u.released_rankings)
         FROM centile.periods p, centile.upkeep u WHERE p.ends_at < now() AND p.board = 'main'",
    )
    .fetch_one(connection)
    .await
    .unwrap()
}

#[tokio::test]
async fn the_views_follow_a_period_from_due_to_dropped() {
    let db = TestDb::new().await;
    until_no_hour_ends(&db.pool().await).await;
    let mut connection = board(&db, "main", json!({"periods": ["week"]})).await;
    raw_sql(
        "SELECT centile.ensure_users('{ann,bob,cyd}');
         SELECT centile.ensure_ledger_months(w.starts_at, w.ends_at), centile_store.open_periods(1, ARRAY[w.starts_at, now()])
         FROM centile.period_before('week', now(), 'UTC') w;
         SELECT r FROM centile.period_before('week', now(), 'UTC') w, LATERAL testing.record_scores(1, 0::smallint,
             '{ann,bob,cyd}', '{30,30,20}', '{}', '{}', '{}', ARRAY[w.starts_at, w.starts_at, w.starts_at + interval '5 hours']) r",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let players: Vec<(i64, String, i64)> = [(1, "ann", 30), (1, "bob", 30), (3, "cyd", 20)]
        .map(|(rank, user, score)| (rank, user.to_owned(), score))
        .into();
    assert_eq!(last_week(&mut connection).await, players);
    assert_eq!(status(&mut connection).await, "due 3 - - f f t 1 0 0 0 0");

    raw_sql("SELECT testing.allow_damage(); UPDATE centile_store.leaderboard l SET score = 21, rank_key = 21 WHERE l.user_id = 3; SELECT centile_store.cut_off_period(1)")
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(status(&mut connection).await, "closing 3 - - f f t 1 1 0 0 0");
    // The lanes' time is now that of the cut-off, which is no event of this week. The view reads no
    // entries.
    let plan: Vec<String> =
        query_scalar("EXPLAIN SELECT * FROM centile.periods").fetch_all(&mut connection).await.unwrap();
    assert!(!plan.iter().any(|line| line.contains("leaderboard")), "{plan:#?}");
    let quiet: bool = query_scalar("SELECT last_event_at IS NULL FROM centile.periods WHERE state = 'open'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(quiet);

    raw_sql(
        "SELECT centile_store.build_archive(1); SELECT centile_store.compare_archive(1);
         SELECT centile_store.finish_close(1, cut_off_at) FROM centile_store.periods WHERE id = 1",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    assert_eq!(last_week(&mut connection).await, players);
    assert_eq!(status(&mut connection).await, "closed 3 1 false f t t 0 0 1 0 1");
    let difference: (String, i64, i64) =
        query_as("SELECT user_id, archive_score, live_score FROM centile.archive_differences")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert_eq!(difference, ("cyd".to_owned(), 20, 21));

    raw_sql(
        "SELECT centile.correct_score('main', 'cyd', 90, w.starts_at + interval '5 hours', 'forgotten', 'dora')
         FROM centile.period_before('week', now(), 'UTC') w",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    assert_eq!(status(&mut connection).await, "closed 3 1 false t t t 0 0 1 1 1");
    raw_sql("SELECT centile_store.refresh_archive(1, 'dora', 'forgotten')").execute(&mut connection).await.unwrap();
    assert_eq!(last_week(&mut connection).await[0], (1, "cyd".to_owned(), 110));
    assert_eq!(status(&mut connection).await, "closed 3 1 false f t t 0 0 1 0 1");
    let index: (i32, i64, bool) = query_as("SELECT revision, players, needs_refresh FROM centile.archive_index")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(index, (2, 3, false));

    raw_sql("SELECT centile_store.drop_archive(1, false)").execute(&mut connection).await.unwrap();
    assert_eq!(status(&mut connection).await, "closed 3 1 - f f t 0 0 1 0 1");
    let gone = raw_sql("SELECT centile.ranking('main', 'week:previous')").execute(&mut connection).await.unwrap_err();
    assert!(gone.to_string().contains("the archive of 'week:previous' of board"), "{gone}");
    let archives: i64 =
        query_scalar("SELECT count(*) FROM centile.archive_index").fetch_one(&mut connection).await.unwrap();
    assert_eq!(archives, 0);
}

#[tokio::test]
async fn a_closed_period_without_its_archive_does_not_agree() {
    let db = TestDb::new().await;
    let mut connection = board(&db, "main", json!({"periods": ["week"]})).await;
    raw_sql(
        "SELECT centile_store.open_periods(1, '{2024-01-15 12:00Z}');
         SELECT centile_store.build_archive(1), centile_store.compare_archive(1), centile_store.finish_close(1, c.at)
         FROM (SELECT centile_store.cut_off_period(1) AS at) c",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let agrees = "SELECT agrees FROM centile.periods";
    assert!(query_scalar::<_, bool>(agrees).fetch_one(&mut connection).await.unwrap());
    // A closed period has no bucket rows.
    let rows = "SELECT count(*) FROM centile.bucket_rows('main', 'week:2024-01-15', 1)";
    assert_eq!(query_scalar::<_, i64>(rows).fetch_one(&mut connection).await.unwrap(), 0);
    raw_sql("DROP MATERIALIZED VIEW centile_archive.main_week_2024_01_15").execute(&mut connection).await.unwrap();
    assert!(!query_scalar::<_, bool>(agrees).fetch_one(&mut connection).await.unwrap());
}

/// Compares a board's bucket view with its players' scores. Several buckets must have players.
async fn occupancy_is_right(connection: &mut PgConnection, slug: &str, order: &str) {
    // Counts the players better than `from_score` and not as good as `to_score`. At a bound itself
    // the tie key decides. A bucket without both has no range.
    let wrong: Vec<String> = query_scalar(
        "SELECT format('%s, bucket %s: %s %s: %s of %s', o.place, o.bucket, o.from_score, o.to_score, o.players, s.players)
         FROM centile.bucket_occupancy o
         CROSS JOIN LATERAL (
             SELECT count(*) AS players FROM centile.standings x
             WHERE x.board = o.board AND num_nonnulls(o.from_score, o.to_score) > 0
               AND (o.from_score IS NULL OR centile.rank_key(x.score, $2) >= centile.rank_key(o.from_score, $2))
               AND (o.to_score IS NULL OR centile.rank_key(x.score, $2) < centile.rank_key(o.to_score, $2))) s
         WHERE o.board = $1
           AND (o.players <> s.players
                OR o.bucket <> (SELECT r.buckets[o.place] FROM centile_store.rankings r WHERE r.id = o.ranking_id)
                OR o.players <> (SELECT count(*) FROM centile_store.leaderboard_bucket b
                                 WHERE b.bucket = o.bucket AND b.ranking_id = o.ranking_id))",
    )
    .bind(slug)
    .bind(order)
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    assert!(wrong.is_empty(), "{order}: {wrong:?}");
    let places: Vec<i32> = query_scalar("SELECT place FROM centile.bucket_occupancy WHERE board = $1 ORDER BY place")
        .bind(slug)
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    assert!(places.into_iter().eq(1..=100), "{order}");
    let occupied: i64 = query_scalar("SELECT count(*) FROM centile.bucket_occupancy WHERE board = $1 AND players > 0")
        .bind(slug)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert!(occupied > 2, "{order}: {occupied} buckets have players");
    let rows_are_the_standings: bool = query_scalar(
        "SELECT (SELECT string_agg((r.user_id, r.user_name, r.score, r.reached_at)::text, ' ' ORDER BY p.place DESC, r.ordinality)
                 FROM generate_series(1, 100) AS p (place)
                 CROSS JOIN LATERAL centile.bucket_rows($1, 'all_time', p.place) WITH ORDINALITY AS r)
              = (SELECT string_agg((s.user_id, s.user_name, s.score, s.reached_at)::text, ' ' ORDER BY s.position)
                 FROM centile.standings s WHERE s.board = $1)
            AND NOT EXISTS (SELECT FROM centile.bucket_occupancy o CROSS JOIN LATERAL centile.bucket_rows($1, 'all_time', o.place) r
                            WHERE o.board = $1 AND r.table_name <> o.table_name)",
    )
    .bind(slug)
    .fetch_one(connection)
    .await
    .unwrap();
    assert!(rows_are_the_standings, "{order}");
}

#[tokio::test]
async fn buckets_show_their_score_ranges() {
    let db = TestDb::new().await;
    for (slug, order) in [("up", "asc"), ("down", "desc")] {
        let rules = json!({"order": order, "periods": ["all_time"], "first_layout": {"bounds": [10, 20, 30]}});
        let mut connection = board(&db, slug, rules).await;
        for points in [5, 10, 15, 29, 30, 31, 99] {
            query("SELECT testing.submit_score($1, 'p' || $2, $2)")
                .bind(slug)
                .bind(points)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        occupancy_is_right(&mut connection, slug, order).await;
        // The same with buckets in an order unrelated to their numbers.
        let ranking = query_scalar("SELECT ranking_id FROM centile.periods WHERE board = $1")
            .bind(slug)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        layout::scatter(&mut connection, ranking, &mut StdRng::seed_from_u64(1), layout::MANY).await;
        occupancy_is_right(&mut connection, slug, order).await;
        let (buckets, players, share): (i64, i64, bool) =
            query_as("SELECT count(*), sum(players)::bigint, abs(sum(share) - 1) < 0.001 FROM centile.bucket_occupancy WHERE board = $1")
                .bind(slug)
                .fetch_one(&mut connection)
                .await
                .unwrap();
        assert_eq!((buckets, players, share), (100, 7, true), "{order}");
        let same: bool = query_scalar(
            "SELECT string_agg((r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at, r.tiebreak)::text, ' ' ORDER BY r.position)
                  = (SELECT string_agg((s.position, s.rank, s.user_id, s.user_name, s.score, s.reached_at, s.tiebreak)::text, ' ' ORDER BY s.position)
                     FROM centile.standings s WHERE s.board = $1)
             FROM centile.ranking($1) r",
        )
        .bind(slug)
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert!(same, "{order}");
    }
}
