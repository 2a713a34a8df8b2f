-- As on a single server. In addition, it applies the batch at once: on a cluster, bucket rows and
-- counts change in the transaction of the batch.
CREATE OR REPLACE FUNCTION centile_store.advance_lane(p_lane centile_store.board_lanes, p_at timestamptz, p_entries centile_store.logged_entries DEFAULT ('{}', '{}', '{}', '{}', '{}', '{}')) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.board_lanes AS l
    SET batch = l.batch + 1, last_at = greatest(l.last_at, p_at)
    WHERE l.board_id = p_lane.board_id AND l.lane = p_lane.lane AND l.batch = p_lane.batch;
    INSERT INTO centile_store.batch_log (board_id, lane, batch, changes, ranking_ids, user_ids, was_rank_keys, was_tie_keys, rank_keys, tie_keys)
    VALUES (p_lane.board_id, p_lane.lane, p_lane.batch + 1, cardinality(p_entries.user_ids), p_entries.ranking_ids, p_entries.user_ids,
            p_entries.was_rank_keys, p_entries.was_tie_keys, p_entries.rank_keys, p_entries.tie_keys);
    PERFORM centile_store.apply_changes(p_lane.lane, p_lane.batch + 1, p_entries.ranking_ids, p_entries.user_ids,
        p_entries.was_rank_keys, p_entries.was_tie_keys, p_entries.rank_keys, p_entries.tie_keys)
    WHERE p_entries.ranking_ids <> '{}';
END
$$;

COMMENT ON FUNCTION centile_store.advance_lane(centile_store.board_lanes, timestamptz, centile_store.logged_entries) IS
'Raises the batch number of a locked lane, logs the entries that the batch changed, and applies it.';
