-- As on a single server. In addition, it applies the batch at once: on a cluster, bucket rows and
-- counts change in the transaction of the batch.
CREATE OR REPLACE FUNCTION centile_store.advance_lane(
    p_lane centile_store.board_lanes, p_at timestamptz, p_ranking_ids bigint[] DEFAULT '{}', p_user_ids bigint[] DEFAULT '{}',
    p_was_rank_keys bigint[] DEFAULT '{}', p_was_tie_keys bigint[] DEFAULT '{}', p_rank_keys bigint[] DEFAULT '{}', p_tie_keys bigint[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.board_lanes AS l
    SET batch = l.batch + 1, last_at = greatest(l.last_at, p_at)
    WHERE l.board_id = p_lane.board_id AND l.lane = p_lane.lane AND l.batch = p_lane.batch;
    INSERT INTO centile_store.batch_log (board_id, lane, batch, changes, ranking_ids, user_ids, was_rank_keys, was_tie_keys, rank_keys, tie_keys)
    VALUES (p_lane.board_id, p_lane.lane, p_lane.batch + 1, cardinality(p_user_ids),
            p_ranking_ids, p_user_ids, p_was_rank_keys, p_was_tie_keys, p_rank_keys, p_tie_keys);
    PERFORM centile_store.apply_changes(p_lane.lane, p_lane.batch + 1, p_ranking_ids, p_user_ids, p_was_rank_keys, p_was_tie_keys, p_rank_keys, p_tie_keys)
    WHERE p_ranking_ids <> '{}';
END
$$;

COMMENT ON FUNCTION centile_store.advance_lane(centile_store.board_lanes, timestamptz, bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) IS
'Raises the batch number of a locked lane, logs the entries that the batch changed, and applies it.';
