-- The writer of a lane calls it if the lane's time is later than the clock. A cut-off may have set
-- that time: then scores follow at it, however far the clock was set back. Otherwise the clock was
-- ahead: later scores would all get that time, and lie in periods that have not begun.
CREATE OR REPLACE FUNCTION centile_store.time_of_cut_off(p_board_id integer, p_lane_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF centile.last_event_at(p_board_id, p_lane_at) IS NULL THEN
        RAISE EXCEPTION 'the clock of the database is behind the last event of the board, at %; scores are accepted again when it has caught up', p_lane_at
            USING ERRCODE = 'CB001', DETAIL = 'clock_behind';
    END IF;
    RETURN p_lane_at;
END
$$;

COMMENT ON FUNCTION centile_store.time_of_cut_off(integer, timestamptz) IS
'The time of a lane that is ahead of the clock, if a cut-off has set it; an error otherwise. Example: SELECT centile_store.time_of_cut_off(1, ''2024-01-22 00:00Z'');';
