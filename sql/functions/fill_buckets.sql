-- Spreads the entries of a new ranking evenly over its buckets, with 1,000 players or more in each.
-- The ranking must not have bucket rows or counts yet. Yields to writers every 1,000 rows.
CREATE OR REPLACE FUNCTION centile_store.fill_buckets(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
-- A million keys sort in memory.
SET work_mem = '128MB'
AS $$
DECLARE
    v_players bigint := (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id);
    v_size    bigint := greatest((v_players + 99) / 100, 1000);
    v_bounds  centile_store.rank_key[];
BEGIN
    WITH key AS MATERIALIZED (
        SELECT k.*, g.buckets[k.n / v_size + 1] AS bucket
        FROM (SELECT l.rank_key, l.tie_key, -l.user_id AS user_key, l.lane,
                     lag(l.rank_key) OVER upwards AS rank_key_below, lag(l.tie_key) OVER upwards AS tie_key_below,
                     row_number() OVER upwards - 1 AS n
              FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id
              WINDOW upwards AS (ORDER BY l.rank_key, l.tie_key, -l.user_id)) k
        CROSS JOIN centile_store.rankings g
        WHERE g.id = p_ranking_id
        ORDER BY k.n
    ), placed AS (
        INSERT INTO centile_store.leaderboard_bucket (bucket, lane, ranking_id, rank_key, tie_key, user_key)
        SELECT k.bucket, k.lane, p_ranking_id, k.rank_key, k.tie_key, k.user_key FROM key k
        WHERE k.n % 1000 <> 0 OR centile_store.yield_to_writers()
    ), tally AS MATERIALIZED (
        SELECT k.lane, k.bucket, count(*) AS players FROM key k GROUP BY k.lane, k.bucket
    ), counted AS (
        INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
        SELECT p_ranking_id, l.lane, ARRAY(
            SELECT coalesce(c.players, 0)::integer
            FROM generate_series(0, 99) AS n LEFT JOIN tally c ON c.lane = l.lane AND c.bucket = n
            ORDER BY n)
        FROM centile_store.rankings g CROSS JOIN LATERAL generate_series(0, g.lanes - 1) AS l (lane)
        WHERE g.id = p_ranking_id
    )
    SELECT array_agg(centile_store.bound_above((k.rank_key_below, k.tie_key_below, NULL)::centile_store.rank_key,
                                               (k.rank_key, k.tie_key, k.user_key)::centile_store.rank_key) ORDER BY k.n)
    INTO v_bounds FROM key k WHERE k.n > 0 AND k.n % v_size = 0;
    PERFORM centile_store.set_layout(p_ranking_id, g.buckets, centile_store.lowest_key(centile_store.key_min()) || v_bounds
        || array_fill(centile_store.highest_key(centile_store.key_max()), ARRAY[99 - coalesce(cardinality(v_bounds), 0)]))
    FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    RETURN v_players;
END
$$;

COMMENT ON FUNCTION centile_store.fill_buckets(bigint) IS
'Makes layout, bucket rows and counts of a ranking from its entries, and returns the number of players. Example: SELECT r.ranking_id IS NOT NULL AS is_begun, centile_store.fill_entries(r.ranking_id) AS entries, centile_store.fill_buckets(r.ranking_id) AS players FROM centile_store.begin_rebuild(1) r;';
