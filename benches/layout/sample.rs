//! Figures from the database: evenness of a layout, rows counted per rank, faults, and lock times
//! of steps.

use sqlx::PgConnection;

use crate::common::{
    Bench, BenchResult,
    read::{Ranking, ranking},
};

/// Records how long each step holds the structure lock, from the grant to the end of the statement.
/// Excludes waiting, and does not affect writers.
pub const NOTE_HOLDS: &str = "
    CREATE UNLOGGED TABLE public.hold (step text, rows bigint, ms double precision, at timestamptz DEFAULT clock_timestamp());
    CREATE TABLE public.probe (n bigint);
    ALTER FUNCTION centile_store.move_boundary(bigint, integer, integer, integer, integer) RENAME TO move_boundary_itself;
    ALTER FUNCTION centile_store.reposition_bucket(bigint, integer, integer, integer, boolean) RENAME TO reposition_bucket_itself;
    CREATE FUNCTION centile_store.move_boundary(p_ranking_id bigint, p_layout integer, p_from integer, p_to integer, p_rows integer)
    RETURNS integer LANGUAGE plpgsql AS $$
    DECLARE
        v_since timestamptz;
        v_rows  integer;
    BEGIN
        PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
        v_since := clock_timestamp();
        v_rows := centile_store.move_boundary_itself(p_ranking_id, p_layout, p_from, p_to, p_rows);
        INSERT INTO public.hold (step, rows, ms)
        SELECT 'move', v_rows, extract(epoch FROM clock_timestamp() - v_since) * 1000 WHERE v_rows IS NOT NULL;
        RETURN v_rows;
    END $$;
    CREATE FUNCTION centile_store.reposition_bucket(p_ranking_id bigint, p_layout integer, p_place integer, p_beside integer, p_above boolean)
    RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        v_since timestamptz;
        v_done  boolean;
    BEGIN
        PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
        v_since := clock_timestamp();
        v_done := centile_store.reposition_bucket_itself(p_ranking_id, p_layout, p_place, p_beside, p_above);
        INSERT INTO public.hold (step, ms)
        SELECT 'reposition', extract(epoch FROM clock_timestamp() - v_since) * 1000 WHERE v_done;
        RETURN v_done;
    END $$";

/// The largest bucket of a ranking.
#[derive(Debug, Clone, Copy)]
pub struct Largest {
    /// Its players divided by the larger of 1,000 and a hundredth of all players.
    pub shares: f64,
    /// Whether the ranking has an empty bucket.
    has_empty: bool,
}

impl Largest {
    /// Returns whether rebalancing leaves it unchanged, by the limits of
    /// src/maintenance/rebalance/balance.rs.
    pub fn is_at_rest(self) -> bool {
        self.shares <= if self.has_empty { 1.3 } else { 1.8 }
    }
}

/// The largest bucket of the board's ranking.
pub async fn largest(connection: &mut PgConnection, board: &str) -> BenchResult<Largest> {
    let ranking = ranking(connection, board).await?;
    let (shares, has_empty) = sqlx::query_as(
        "SELECT (max(players) / greatest(sum(players) / 100, 1000))::float8, bool_or(players = 0)
         FROM unnest(centile_store.bucket_totals($1)) AS players",
    )
    .bind(ranking.id)
    .fetch_one(connection)
    .await?;
    Ok(Largest { shares, has_empty })
}

/// Rows that `centile_store.bucket_standings` counts for a rank.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Mean over a few thousand players.
    pub mean: f64,
    pub most: i64,
    /// Mean if every count started at the nearer end of the bucket, and all equal scores were in
    /// one bucket.
    pub nearest: f64,
}

/// Returns the rows counted for the ranks of a few thousand of `players` players.
pub async fn counted(connection: &mut PgConnection, ranking: &Ranking, players: u64) -> BenchResult<Counted> {
    let (mean, most, nearest) = sqlx::query_as(
        "WITH found AS MATERIALIZED (
            SELECT l.rank_key, a.place, a.counted, a.from_below, b.ties = 'shared' AND NOT a.has_all_equals AS has_equals_beside,
                   CASE WHEN a.from_below THEN a.counted[1] ELSE a.counted[3] END AS rows
            FROM centile_store.leaderboard l
            JOIN centile_store.boards b ON b.id = $2
            CROSS JOIN LATERAL centile_store.above_in_bucket(l.ranking_id, l.rank_key, l.tie_key, -l.user_id) a
            WHERE l.ranking_id = $1 AND l.user_id % $3 = 0
         ), beside AS (
            -- What count_above adds where equals are in other buckets too.
            SELECT f.rank_key, sum(CASE WHEN a.from_below THEN a.counted[1] ELSE a.counted[3] END) AS rows
            FROM (SELECT DISTINCT rank_key FROM found WHERE has_equals_beside) f
            CROSS JOIN (VALUES (9223372036854775807), (-9223372036854775808)) AS e (key)
            CROSS JOIN LATERAL centile_store.above_in_bucket($1, f.rank_key, e.key, e.key) a
            GROUP BY f.rank_key
         )
         SELECT avg(f.rows + coalesce(b.rows, 0))::float8, max(f.rows + coalesce(b.rows, 0))::bigint,
                avg(least(f.counted[2], (centile_store.bucket_totals($1))[f.place] - f.counted[2]))::float8
         FROM found f LEFT JOIN beside b ON b.rank_key = f.rank_key AND f.has_equals_beside",
    )
    .bind(ranking.id)
    .bind(ranking.board)
    .bind(i64::try_from(players / 2_000).unwrap_or(i64::MAX).max(1))
    .fetch_one(connection)
    .await?;
    Ok(Counted { mean, most, nearest })
}

/// Returns faults of the board's ranking: rows that do not agree with counts, rows outside the
/// bounds of their buckets, and entries that differ from the ledger.
pub fn verify(bench: &Bench, ranking: &Ranking) -> BenchResult<Vec<String>> {
    let (id, period) = (ranking.id, ranking.period);
    let text = bench.psql(&format!(
        "SET work_mem = '256MB';
         WITH entry AS MATERIALIZED (SELECT * FROM centile_store.leaderboard WHERE ranking_id = {id}),
         bucket_row AS MATERIALIZED (SELECT * FROM centile_store.leaderboard_bucket WHERE ranking_id = {id}),
         place AS MATERIALIZED (
             SELECT u.*, lead(ROW(u.rank_key, u.tie_key, u.user_key)) OVER (ORDER BY u.place) AS next
             FROM centile_store.rankings g
             CROSS JOIN unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys, centile_store.bucket_totals(g.id))
                 WITH ORDINALITY AS u (bucket, rank_key, tie_key, user_key, players, place)
             WHERE g.id = {id}
         ),
         counted AS (
             SELECT (SELECT count(*) FROM entry) AS entries,
                    (SELECT count(*) FROM bucket_row) AS rows,
                    (SELECT sum(players) FROM place) AS in_buckets,
                    (SELECT count(*) FROM entry JOIN bucket_row b USING (rank_key, tie_key) WHERE b.user_key = -entry.user_id) AS same_keys)
         SELECT 'counts: ' || counted::text FROM counted
         WHERE (rows, in_buckets, same_keys) IS DISTINCT FROM (entries, entries::numeric, entries)
         UNION ALL
         SELECT 'entries unlike the ledger: ' || count(*)
         FROM entry l FULL JOIN centile.entries_from_ledger({period}) e USING (user_id)
         WHERE (l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros) IS DISTINCT FROM (e.score, e.rank_key, e.tie_key, e.reached_at, e.only_zeros)
         HAVING count(*) > 0
         UNION ALL
         SELECT 'buckets that do not have the rows that they count: ' || count(*)
         FROM place p
         LEFT JOIN (
             SELECT p.place, count(*) AS rows
             FROM place p JOIN bucket_row b ON b.bucket = p.bucket
             WHERE ROW(b.rank_key, b.tie_key, b.user_key) >= ROW(p.rank_key, p.tie_key, p.user_key)
               AND (p.next IS NULL OR ROW(b.rank_key, b.tie_key, b.user_key) < p.next)
             GROUP BY p.place) r ON r.place = p.place
         WHERE p.players <> coalesce(r.rows, 0)
         HAVING count(*) > 0"
    ))?;
    Ok(text.lines().map(ToOwned::to_owned).collect())
}
