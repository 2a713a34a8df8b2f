-- Applies whole batches after p_applied, in sequence, until they have p_limit changes or p_newest is
-- reached. If the log lacks a batch, marks all rankings of the board as damaged. The caller holds the
-- bucket lock.
CREATE OR REPLACE FUNCTION centile_store.apply_lane(p_board_id integer, p_lane smallint, p_applied bigint, p_newest bigint, p_limit integer, OUT batch bigint, OUT changes bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET work_mem = '64MB'
AS $$
#variable_conflict use_column
DECLARE
    v_batches bigint;
    v_changes record;
BEGIN
    SELECT max(x.batch), count(*), sum(x.changes) INTO batch, v_batches, changes
    FROM (SELECT c.batch, c.changes, sum(c.changes) OVER (ORDER BY c.batch) - c.changes AS before
          FROM (SELECT c.batch, c.changes FROM centile_store.batch_log c
                WHERE c.board_id = p_board_id AND c.lane = p_lane AND c.batch > p_applied AND c.batch <= p_newest
                -- p_limit batches suffice: nearly every batch has a change.
                ORDER BY c.batch LIMIT p_limit) c) x
    WHERE x.before < p_limit;
    batch := coalesce(apply_lane.batch, p_newest);
    changes := coalesce(changes, 0);
    IF v_batches <> apply_lane.batch - p_applied THEN
        RAISE WARNING 'the log of batches lacks batches of lane % of board % after batch %', p_lane, p_board_id, p_applied;
        UPDATE centile_store.rankings g SET damaged_at = clock_timestamp()
        FROM centile_store.current_rankings c WHERE c.board_id = p_board_id AND g.id = c.id AND g.has_bucket_rows AND g.damaged_at IS NULL;
    END IF;
    -- Folds the changes of each entry: the key before the first one, and the key after the last one.
    SELECT array_agg(x.ranking_id) AS rankings, array_agg(x.user_id) AS users, array_agg(x.first_rank_key) AS was_keys,
           array_agg(x.first_tie_key) AS was_ties, array_agg(x.rank_key) AS keys, array_agg(x.tie_key) AS ties
    INTO v_changes
    FROM (SELECT e.ranking_id, e.user_id, e.rank_key, e.tie_key, first_value(e.was_rank_key) OVER entry AS first_rank_key,
                 first_value(e.was_tie_key) OVER entry AS first_tie_key, lead(e.user_id) OVER entry IS NULL AS is_last
          FROM centile_store.batch_log c
          CROSS JOIN LATERAL unnest(c.ranking_ids, c.user_ids, c.was_rank_keys, c.was_tie_keys, c.rank_keys, c.tie_keys)
              AS e (ranking_id, user_id, was_rank_key, was_tie_key, rank_key, tie_key)
          JOIN centile_store.rankings g ON g.id = e.ranking_id AND g.has_bucket_rows
          WHERE c.board_id = p_board_id AND c.lane = p_lane AND c.batch > p_applied AND c.batch <= apply_lane.batch
          WINDOW entry AS (PARTITION BY e.ranking_id, e.user_id ORDER BY c.batch)) x
    WHERE x.is_last;
    PERFORM centile_store.apply_or_mark(p_lane, batch, v_changes.rankings, v_changes.users, v_changes.was_keys, v_changes.was_ties, v_changes.keys, v_changes.ties)
    WHERE v_changes.rankings IS NOT NULL;
    UPDATE centile_store.applied a SET batch = apply_lane.batch WHERE a.board_id = p_board_id AND a.lane = p_lane AND a.batch = p_applied;
    IF NOT FOUND THEN
        INSERT INTO centile_store.applied (board_id, lane, batch) VALUES (p_board_id, p_lane, apply_lane.batch);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.apply_lane(integer, smallint, bigint, bigint, integer) IS
'Applies logged batches of a lane, and returns the last one and the number of changes. Example: SELECT centile_store.apply_lane(b.id, 0::smallint, a.batches[1], n.batches[1], 1000) FROM centile_store.boards b CROSS JOIN centile_store.applied_batches(b.id, 1) AS a (batches) CROSS JOIN centile_store.lane_batches(b.id, 1) AS n (batches) WHERE n.batches[1] > a.batches[1];';
