-- A batch begins with these locks where several instances write to the lane.
CREATE OR REPLACE FUNCTION centile_store.hold_lane(p_board_id integer, p_lane smallint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.lock_structure(p_board_id, false, p_lane);
    PERFORM FROM centile_store.board_lanes l
    WHERE l.board_id = p_board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1 FOR UPDATE;
END
$$;

COMMENT ON FUNCTION centile_store.hold_lane(integer, smallint) IS
'Takes a board''s structure lock (shared) and the row of a lane for this transaction. Example: SELECT centile_store.hold_lane(1, 0::smallint);';
