//! Period boundaries that pass while a test runs.

use sqlx::PgPool;

use super::wait::until;

/// Makes days of one second, weeks of three and months of six. All boundaries come from
/// `period_at`, so many of them pass by the real clock within a test.
pub const SHORT_DAYS: &str = "
    CREATE OR REPLACE FUNCTION centile.period_at(p_kind text, p_at timestamptz, p_zone text)
        RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
    AS $$
        SELECT 'all_time', '-infinity'::timestamptz, 'infinity'::timestamptz WHERE p_kind = 'all_time'
        UNION ALL
        SELECT n::text, to_timestamp(n * s.seconds), to_timestamp((n + 1) * s.seconds)
        FROM (VALUES ('day', 1), ('week', 3), ('month', 6)) AS s (kind, seconds)
        CROSS JOIN LATERAL floor(extract(epoch FROM p_at) / s.seconds) AS n
        WHERE s.kind = p_kind
    $$";

/// Makes the days of rolling windows four seconds long, and the hours three. A window of `2d` lasts
/// eight seconds, and one of `24h` fifteen.
pub const SHORT_WINDOWS: &str = "
    CREATE OR REPLACE FUNCTION centile.rolling_window(p_length text, p_at timestamptz, p_zone text)
        RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz, current_from timestamptz)
    LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
    AS $$
        SELECT p_length || '-' || ('2000-01-01'::date + (n % 2000000)::integer) || CASE p_length WHEN '24h' THEN 'T00' ELSE '' END,
               to_timestamp((n + 1 - s.steps) * s.seconds), to_timestamp((n + 1) * s.seconds), to_timestamp(n * s.seconds)
        FROM (VALUES ('2d', 4, 2), ('3d', 4, 3), ('24h', 3, 5)) AS s (length, seconds, steps)
        CROSS JOIN LATERAL floor(extract(epoch FROM p_at) / s.seconds) AS n
        WHERE s.length = p_length
    $$";

/// Waits until no hour or day of any zone ends within a minute.
pub async fn until_no_hour_ends(pool: &PgPool) {
    until("an hour has begun", async || {
        let begun = "SELECT extract(epoch FROM clock_timestamp())::bigint % 900 < 840";
        sqlx::query_scalar::<_, bool>(begun).fetch_one(pool).await.expect("the time")
    })
    .await;
}

/// Waits until the given number of periods of each kind is over.
pub async fn until_over(pool: &PgPool, kinds: &[(&str, i64)]) {
    let over = "SELECT count(*) FROM centile_store.periods WHERE kind = $1 AND ends_at < clock_timestamp()";
    for &(kind, least) in kinds {
        until("the periods are over", async || {
            sqlx::query_scalar::<_, i64>(over).bind(kind).fetch_one(pool).await.expect("periods") >= least
        })
        .await;
    }
}

/// Fails unless every event is in exactly one period of each kind, and there are at least as many
/// periods as given. Returns the number of events.
pub async fn events_lie_in_one_each(pool: &PgPool, kinds: &[(&str, i64)]) -> i64 {
    let events: i64 = sqlx::query_scalar("SELECT count(*) FROM centile_store.score_transactions WHERE kind = 'score'")
        .fetch_one(pool)
        .await
        .expect("the ledger");
    for &(kind, least) in kinds {
        let (periods, holding): (i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM centile_store.periods WHERE kind = $1),
                    (SELECT count(*) FROM centile_store.score_transactions t
                     WHERE t.kind = 'score' AND 1 = (SELECT count(*) FROM centile_store.periods p
                         WHERE p.kind = $1 AND p.starts_at <= t.occurred_at AND t.occurred_at < p.ends_at))",
        )
        .bind(kind)
        .fetch_one(pool)
        .await
        .expect("periods");
        eprintln!("{kind}: {periods} periods with {holding} of {events} events");
        assert!(periods >= least, "only {periods} periods of kind {kind}");
        assert_eq!(holding, events, "every event must be in exactly one {kind}");
    }
    events
}
