//! What is read from the database: the shape of a layout, whether it is right, how long its steps hold the lock.

use sqlx::PgConnection;

use crate::common::{
    Bench, Outcome,
    read::{Ranking, ranking},
};

/// Notes how long each step has the structure lock: from the moment it is granted to the end of the statement. Writers are not
/// touched, and waiting does not count.
pub const NOTE_HOLDS: &str = "
    CREATE UNLOGGED TABLE public.hold (step text, rows bigint, ms double precision, at timestamptz DEFAULT clock_timestamp());
    CREATE TABLE public.probe (n bigint);
    ALTER FUNCTION centile_store.tidy_buckets(bigint, smallint[], double precision) RENAME TO tidy_buckets_itself;
    ALTER FUNCTION centile_store.move_stripe(bigint, bigint, bigint, bigint, smallint) RENAME TO move_stripe_itself;
    CREATE FUNCTION centile_store.tidy_buckets(p_ranking_id bigint, p_buckets smallint[], p_largest double precision, OUT changes integer, OUT buckets integer)
    LANGUAGE plpgsql AS $$
    DECLARE
        v_since timestamptz;
    BEGIN
        PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
        v_since := clock_timestamp();
        SELECT * INTO changes, buckets FROM centile_store.tidy_buckets_itself(p_ranking_id, p_buckets, p_largest);
        INSERT INTO public.hold (step, rows, ms) VALUES ('tidy', 0, extract(epoch FROM clock_timestamp() - v_since) * 1000);
    END $$;
    CREATE FUNCTION centile_store.move_stripe(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_to_bucket smallint)
    RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        v_since timestamptz;
        v_rows  bigint;
    BEGIN
        PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
        v_since := clock_timestamp();
        v_rows := centile_store.move_stripe_itself(p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_to_bucket);
        INSERT INTO public.hold (step, rows, ms) VALUES ('move', v_rows, extract(epoch FROM clock_timestamp() - v_since) * 1000);
        RETURN v_rows;
    END $$";

/// What a layout is like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Players of the largest bucket by a hundredth of all.
    pub bucket: f64,
    /// Players of the largest stripe by the target.
    pub stripe: f64,
    pub stripes: i64,
}

/// The shape of the board's ranking.
pub async fn shape(connection: &mut PgConnection, board: &str) -> Outcome<Shape> {
    let ranking = ranking(connection, board).await?;
    let (players, bucket, stripe, stripes): (i64, i64, f64, i64) = sqlx::query_as(
        "SELECT (SELECT sum(c)::bigint FROM unnest(centile_store.bucket_totals($1)) AS c),
                (SELECT max(c) FROM unnest(centile_store.bucket_totals($1)) AS c),
                (SELECT max(c)::float8 / b.stripe_target FROM generate_series(0, 99) AS n
                 CROSS JOIN unnest(centile_store.stripe_totals($1, n::smallint)) AS c),
                (SELECT count(*) FROM centile_store.stripes WHERE ranking_id = $1)
         FROM centile_store.boards b WHERE b.id = $2",
    )
    .bind(ranking.id)
    .bind(ranking.board)
    .fetch_one(connection)
    .await?;
    Ok(Shape { bucket: bucket as f64 * 100.0 / players.max(1) as f64, stripe, stripes })
}

/// Whether nothing is left to be done to the layout.
pub async fn is_in_shape(connection: &mut PgConnection, board: &str) -> Outcome<bool> {
    let ranking = ranking(connection, board).await?;
    let statement = "SELECT NOT EXISTS (SELECT FROM centile_store.buckets_to_tidy($1)) AND NOT EXISTS (SELECT FROM centile_store.stripe_moves($1))";
    Ok(sqlx::query_scalar(statement).bind(ranking.id).fetch_one(connection).await?)
}

/// What is wrong with the board's ranking: rows and counts that do not agree, entries that the ledger does not give.
pub fn verify(bench: &Bench, ranking: &Ranking) -> Outcome<Vec<String>> {
    let (id, period) = (ranking.id, ranking.period);
    let text = bench.psql(&format!(
        "SET work_mem = '256MB';
         WITH entry AS MATERIALIZED (SELECT * FROM centile_store.leaderboard WHERE ranking_id = {id}),
         bucket_row AS MATERIALIZED (SELECT * FROM centile_store.leaderboard_bucket WHERE ranking_id = {id}),
         counted AS (
             SELECT (SELECT count(*) FROM entry) AS entries,
                    (SELECT count(*) FROM bucket_row) AS rows,
                    (SELECT sum(c) FROM unnest(centile_store.bucket_totals({id})) AS c) AS in_buckets,
                    (SELECT sum(c) FROM generate_series(0, 99) AS n CROSS JOIN unnest(centile_store.stripe_totals({id}, n::smallint)) AS c) AS in_stripes,
                    (SELECT count(*) FROM entry JOIN bucket_row b USING (rank_key, tie_key) WHERE b.user_key = -entry.user_id) AS same_keys)
         SELECT 'counts: ' || counted::text FROM counted
         WHERE (rows, in_buckets, in_stripes, same_keys) IS DISTINCT FROM (entries, entries::numeric, entries::numeric, entries)
         UNION ALL
         SELECT 'entries unlike the ledger: ' || count(*)
         FROM entry l FULL JOIN centile.entries_from_ledger({period}) e USING (user_id)
         WHERE (l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros) IS DISTINCT FROM (e.score, e.rank_key, e.tie_key, e.reached_at, e.only_zeros)
         HAVING count(*) > 0
         UNION ALL
         SELECT 'stripes that hold what they do not count: ' || count(*)
         FROM (SELECT s.*, lead(ROW(s.rank_key, s.tie_key, s.user_key)) OVER o AS next,
                      (centile_store.stripe_totals({id}, s.bucket))[s.stripe] AS players
               FROM centile_store.stripes s WHERE s.ranking_id = {id} WINDOW o AS (ORDER BY s.rank_key, s.tie_key, s.user_key)) s
         WHERE s.players <> (
             SELECT count(*) FROM centile_store.leaderboard_bucket b
             WHERE b.bucket = s.bucket AND b.ranking_id = {id} AND ROW(b.rank_key, b.tie_key, b.user_key) >= ROW(s.rank_key, s.tie_key, s.user_key)
               AND (s.next IS NULL OR ROW(b.rank_key, b.tie_key, b.user_key) < s.next))
         HAVING count(*) > 0"
    ))?;
    Ok(text.lines().map(ToOwned::to_owned).collect())
}
