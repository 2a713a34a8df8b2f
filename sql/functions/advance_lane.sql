-- The caller has locked the row of the lane. A rebuild may raise a lane without a row in the feed;
-- rank indexes then reload.
CREATE OR REPLACE FUNCTION centile_store.advance_lane(p_lane centile_store.board_lanes, p_at timestamptz, p_user_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.board_lanes AS l
    SET batch = l.batch + 1, last_at = greatest(l.last_at, p_at)
    WHERE l.board_id = p_lane.board_id AND l.lane = p_lane.lane AND l.batch = p_lane.batch;
    INSERT INTO centile_store.batch_changes (board_id, lane, batch, user_ids)
    VALUES (p_lane.board_id, p_lane.lane, p_lane.batch + 1, ARRAY(SELECT DISTINCT u.id FROM unnest(p_user_ids) AS u (id)));
END
$$;

COMMENT ON FUNCTION centile_store.advance_lane(centile_store.board_lanes, timestamptz, bigint[]) IS
'Raises the batch number of a locked lane and records in the feed which users'' entries the batch changed. Example: SELECT centile_store.advance_lane(l, now(), ''{1}'') FROM centile_store.board_lanes l WHERE l.board_id = 1 AND l.lane = 0;';
