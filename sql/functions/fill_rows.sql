-- Brings the bucket rows of a lane to the lane's last batch: first those of players who have them
-- already, by the log, then those of the next p_limit players. Call it until "players" is 0, and
-- again when scores have arrived. Writers do not wait. For a ranking without bucket rows, only sets the batch.
CREATE OR REPLACE FUNCTION centile_store.fill_rows(p_ranking_id bigint, p_lane smallint, p_limit integer DEFAULT 10000, OUT players bigint, OUT changes bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET work_mem = '64MB'
AS $$
#variable_conflict use_column
DECLARE
    v_filling record;
    v_step    record;
BEGIN
    SELECT f.*, g.has_bucket_rows, coalesce(q.ranking_id, g.id) AS logged_id INTO v_filling
    FROM centile_store.rankings g
    JOIN centile_store.fillings f ON f.board_id = g.board_id AND f.ranking_id = g.id AND f.lane = p_lane
    JOIN centile_store.periods q ON q.id = g.period_id
    WHERE g.id = p_ranking_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'ranking % is not being built', p_ranking_id USING ERRCODE = 'CB409';
    ELSIF NOT v_filling.has_bucket_rows THEN
        UPDATE centile_store.fillings f SET rows_up_to = centile_store.key_max(), batch = (
            SELECT l.batch FROM centile_store.board_lanes l WHERE l.board_id = f.board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1)
        WHERE f.board_id = v_filling.board_id AND f.ranking_id = p_ranking_id AND f.lane = p_lane;
        players := 0;
        changes := 0;
        RETURN;
    ELSIF v_filling.rows_up_to = 0 THEN
        INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
        SELECT p_ranking_id, p_lane, array_fill(0, ARRAY[100])
        WHERE NOT EXISTS (SELECT FROM centile_store.bucket_counts c WHERE c.ranking_id = p_ranking_id AND c.lane = p_lane);
    END IF;
    -- One statement, so all rows are as of the same batch.
    WITH next AS MATERIALIZED (
        SELECT max(n.user_id) AS up_to, count(*) AS players
        FROM (SELECT p.user_id FROM centile_store.players p
              WHERE p.board_id = v_filling.board_id AND p.lane = p_lane AND p.user_id > v_filling.rows_up_to ORDER BY p.user_id LIMIT p_limit) n
    ), logged AS MATERIALIZED (
        SELECT c.* FROM centile_store.batch_log c
        WHERE c.board_id = v_filling.board_id AND c.lane = p_lane AND c.batch > v_filling.batch AND v_filling.rows_up_to > 0
    ), change AS MATERIALIZED (
        SELECT x.user_id, x.was_rank_key, x.was_tie_key, x.rank_key, x.tie_key, 1 AS n
        FROM (SELECT e.user_id, e.rank_key, e.tie_key, first_value(e.was_rank_key) OVER entry AS was_rank_key,
                     first_value(e.was_tie_key) OVER entry AS was_tie_key, lead(e.user_id) OVER entry IS NULL AS is_last
              FROM logged c
              CROSS JOIN LATERAL unnest(c.ranking_ids, c.user_ids, c.was_rank_keys, c.was_tie_keys, c.rank_keys, c.tie_keys)
                  AS e (ranking_id, user_id, was_rank_key, was_tie_key, rank_key, tie_key)
              WHERE e.ranking_id = v_filling.logged_id AND e.user_id <= v_filling.rows_up_to
              WINDOW entry AS (PARTITION BY e.user_id ORDER BY c.batch)) x
        WHERE x.is_last
        UNION ALL
        SELECT l.user_id, NULL, NULL, l.rank_key, l.tie_key, 0
        FROM centile_store.leaderboard l
        WHERE l.ranking_id = p_ranking_id AND l.lane = p_lane AND l.user_id > v_filling.rows_up_to AND l.user_id <= (SELECT n.up_to FROM next n)
    )
    SELECT n.*, b.*, c.* INTO v_step
    FROM next n
    CROSS JOIN (SELECT (SELECT l.batch FROM centile_store.board_lanes l WHERE l.board_id = v_filling.board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1) AS batch,
                       (SELECT count(*) FROM logged) AS logged) b
    CROSS JOIN (SELECT array_agg(p_ranking_id) AS rankings, array_agg(c.user_id) AS users, array_agg(c.was_rank_key) AS was_keys, array_agg(c.was_tie_key) AS was_ties,
                       array_agg(c.rank_key) AS keys, array_agg(c.tie_key) AS ties, coalesce(sum(c.n), 0) AS changes FROM change c) c;
    IF v_filling.rows_up_to > 0 AND v_step.logged < v_step.batch - v_filling.batch THEN
        RAISE EXCEPTION 'batches of lane % are missing in the log', p_lane USING ERRCODE = 'CB001', HINT = 'Begin the rebuild again.';
    END IF;
    PERFORM centile_store.apply_changes(p_lane, NULL, v_step.rankings, v_step.users, v_step.was_keys, v_step.was_ties, v_step.keys, v_step.ties)
    WHERE v_step.users IS NOT NULL;
    UPDATE centile_store.fillings f SET rows_up_to = coalesce(v_step.up_to, centile_store.key_max()), batch = v_step.batch
    WHERE f.board_id = v_filling.board_id AND f.ranking_id = p_ranking_id AND f.lane = p_lane;
    players := v_step.players;
    changes := v_step.changes;
END
$$;

COMMENT ON FUNCTION centile_store.fill_rows(bigint, smallint, integer) IS
'Writes bucket rows of a lane of a new ranking, and returns the numbers of players added and of logged changes applied. Example: SELECT r.ranking_id, (centile_store.fill_rows(r.ranking_id, 0::smallint)).players FROM centile_store.begin_rebuild(1) AS r (ranking_id);';
