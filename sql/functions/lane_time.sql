-- The earliest time that an event of the board can get at p_at: never before the last event of a lane.
CREATE FUNCTION centile_store.lane_time(p_board_id integer, p_at timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE
RETURN (SELECT greatest(p_at, max(last_at)) FROM centile_store.board_lanes WHERE board_id = p_board_id);

COMMENT ON FUNCTION centile_store.lane_time(integer, timestamptz) IS
'The given time, or that of the board''s last event if later. Example: SELECT centile_store.lane_time(1, now());';
