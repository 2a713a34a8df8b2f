-- For players who are new to the board. The caller holds the lane's lock and writes its next batch.
CREATE OR REPLACE FUNCTION centile_store.record_segments(p_lane centile_store.board_lanes, p_users bigint[], p_segments text[]) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    INSERT INTO centile_store.segment_members (board_id, user_id, segment, lane, batch, changed_at, is_member)
    SELECT p_lane.board_id, m.user_id, m.segment, p_lane.lane, p_lane.batch + 1, '-infinity', true
    FROM unnest(p_users, p_segments) AS m (user_id, segment)
$$;

COMMENT ON FUNCTION centile_store.record_segments(centile_store.board_lanes, bigint[], text[]) IS
'Records the segments of players with their first scores on a board. Example: SELECT centile_store.record_segments(l, ''{}'', ''{}'') FROM centile_store.board_lanes l WHERE l.board_id = 1 AND l.lane = 0;';
