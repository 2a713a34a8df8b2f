-- Call it before fill_rows. Each bucket gets at least 1,000 players, give or take scores that arrive
-- meanwhile.
CREATE OR REPLACE FUNCTION centile_store.fill_bounds(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
-- A million keys sort in memory.
SET work_mem = '128MB'
AS $$
DECLARE
    v_players bigint := (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id);
    v_size    bigint := greatest((v_players + 99) / 100, 1000);
    v_bounds  centile_store.rank_key[];
BEGIN
    IF NOT (SELECT g.has_bucket_rows FROM centile_store.rankings g WHERE g.id = p_ranking_id) THEN
        RETURN v_players;
    END IF;
    SELECT array_agg(centile_store.bound_above((k.rank_key_below, k.tie_key_below, NULL)::centile_store.rank_key,
                                               (k.rank_key, k.tie_key, k.user_key)::centile_store.rank_key) ORDER BY k.n)
    INTO v_bounds
    FROM (SELECT l.rank_key, l.tie_key, -l.user_id AS user_key, lag(l.rank_key) OVER upwards AS rank_key_below, lag(l.tie_key) OVER upwards AS tie_key_below,
                 row_number() OVER upwards - 1 AS n
          FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id
          WINDOW upwards AS (ORDER BY l.rank_key, l.tie_key, -l.user_id)) k
    WHERE k.n > 0 AND k.n % v_size = 0 AND k.n < v_size * 100;
    PERFORM centile_store.set_layout(p_ranking_id, g.buckets, centile_store.lowest_key(centile_store.key_min()) || v_bounds
        || array_fill(centile_store.highest_key(centile_store.key_max()), ARRAY[99 - coalesce(cardinality(v_bounds), 0)]))
    FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    RETURN v_players;
END
$$;

COMMENT ON FUNCTION centile_store.fill_bounds(bigint) IS
'Sets the bounds of a new ranking so that its players spread evenly over the buckets, and returns their number. Example: SELECT r.ranking_id, centile_store.fill_bounds(r.ranking_id) AS players FROM centile_store.begin_rebuild(1) AS r (ranking_id);';
