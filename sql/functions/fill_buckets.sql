-- Lays out a ranking that nobody reads yet and that has its entries: cuts them into stripes of about the target, spreads these evenly
-- over the buckets, writes bucket rows and counts, and returns the number of players. What it had of these is its caller's to
-- have removed.
CREATE FUNCTION centile_store.fill_buckets(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
-- A million keys sort in memory.
SET work_mem = '128MB'
AS $$
DECLARE
    v_players bigint := (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id);
    v_size    bigint;
    v_stripes bigint;
BEGIN
    SELECT ceil(v_players / greatest(ceil(v_players::numeric / b.stripe_target), 1)) INTO STRICT v_size
    FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id WHERE g.id = p_ranking_id;
    v_size := greatest(v_size, 1);
    v_stripes := greatest((v_players + v_size - 1) / v_size, 1);

    WITH key AS MATERIALIZED (
        SELECT k.rank_key, k.tie_key, k.user_key, k.rank_key_below, k.tie_key_below, k.place, k.place / v_size AS stripe,
               ((k.place / v_size * 100 + 50) / v_stripes)::smallint AS bucket
        FROM (SELECT l.rank_key, l.tie_key, -l.user_id AS user_key,
                     lag(l.rank_key) OVER upwards AS rank_key_below, lag(l.tie_key) OVER upwards AS tie_key_below,
                     row_number() OVER upwards - 1 AS place
              FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id
              WINDOW upwards AS (ORDER BY l.rank_key, l.tie_key, -l.user_id)) k
        ORDER BY k.place
    ), placed AS (
        INSERT INTO centile_store.leaderboard_bucket (bucket, ranking_id, rank_key, tie_key, user_key)
        SELECT k.bucket, p_ranking_id, k.rank_key, k.tie_key, k.user_key FROM key k
    ), stripe AS (
        SELECT k.*, row_number() OVER (PARTITION BY k.bucket ORDER BY k.stripe) AS number FROM key k WHERE k.place % v_size = 0
        UNION ALL
        SELECT 0, 0, 0, 0, 0, 0, 0, 50 / v_stripes, 1 WHERE v_players = 0
    ), bound AS (
        INSERT INTO centile_store.stripes (ranking_id, bucket, stripe, rank_key, tie_key, user_key)
        SELECT p_ranking_id, s.bucket, s.number,
               -- The lowest begins where keys do; others at their lowest key, and where nobody below shares that rank key, or that
               -- time, at all of these: see count_in_stripe.
               CASE WHEN s.stripe > 0 THEN s.rank_key ELSE -9223372036854775808 END,
               CASE WHEN s.stripe > 0 AND s.rank_key_below = s.rank_key THEN s.tie_key ELSE -9223372036854775808 END,
               CASE WHEN s.stripe > 0 AND (s.rank_key_below, s.tie_key_below) = (s.rank_key, s.tie_key) THEN s.user_key ELSE -9223372036854775808 END
        FROM stripe s
    ), bucket AS (
        SELECT s.bucket, array_agg(least(v_size, v_players - s.place)::integer ORDER BY s.number) AS counts FROM stripe s GROUP BY s.bucket
    ), stripes_counted AS (
        INSERT INTO centile_store.stripe_counts (ranking_id, bucket, lane, counts)
        SELECT p_ranking_id, b.bucket, n, CASE WHEN n = 0 THEN b.counts ELSE array_fill(0, ARRAY[cardinality(b.counts)]) END
        FROM bucket b
        CROSS JOIN centile_store.rankings g
        CROSS JOIN generate_series(0, g.lanes - 1) AS n
        WHERE g.id = p_ranking_id
    )
    INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
    SELECT p_ranking_id, n,
           ARRAY(SELECT CASE WHEN n = 0 THEN coalesce((SELECT sum(c) FROM unnest(b.counts) AS c), 0) ELSE 0 END::bigint
                 FROM generate_series(0, 99) AS x LEFT JOIN bucket b ON b.bucket = x ORDER BY x)
    FROM centile_store.rankings g
    CROSS JOIN generate_series(0, g.lanes - 1) AS n
    WHERE g.id = p_ranking_id;
    RETURN v_players;
END
$$;

COMMENT ON FUNCTION centile_store.fill_buckets(bigint) IS
'Makes layout, bucket rows and counts of a ranking from its entries. Example: SELECT r.ranking_id IS NOT NULL AS is_begun, centile_store.fill_entries(r.ranking_id) AS entries, centile_store.fill_buckets(r.ranking_id) AS players FROM centile_store.begin_rebuild(1) r;';
