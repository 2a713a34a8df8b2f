-- Maintenance keeps the newest batch of each lane in the log. Returns NULL if the log has no batch of
-- the lane.
CREATE OR REPLACE FUNCTION centile_store.last_logged(p_board_id integer, p_lane smallint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT max(c.batch) FROM centile_store.batch_log c WHERE c.board_id = p_board_id AND c.lane = p_lane);
END
$$;

COMMENT ON FUNCTION centile_store.last_logged(integer, smallint) IS
'Number of the newest batch of a lane in the log. Example: SELECT centile_store.last_logged(1, 0::smallint);';
