-- The time that the next event of a lane would get at p_at: never before the lane's last event.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.lane_time(p_board_id integer, p_lane smallint, p_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT greatest(p_at, last_at) FROM centile_store.board_lanes
            WHERE board_id = p_board_id AND lane = p_lane ORDER BY batch DESC LIMIT 1);
END
$$;

COMMENT ON FUNCTION centile_store.lane_time(integer, smallint, timestamptz) IS
'The given time, or that of the lane''s last event if later. Example: SELECT centile_store.lane_time(1, 0::smallint, ''2024-01-01 12:00Z'');';
