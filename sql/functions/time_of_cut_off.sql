-- For a lane whose last event is later than the clock. After a cut-off at the end of a period, scores
-- follow it, however far the clock was set back. Otherwise the clock was ahead: later scores would all
-- get that time, and lie in periods that have not begun.
CREATE OR REPLACE FUNCTION centile_store.time_of_cut_off(p_board_id integer, p_last_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.board_id = p_board_id AND p.ends_at = p_last_at) THEN
        RAISE EXCEPTION 'the clock of the database is behind the last event of the board, at %; scores are accepted again when it has caught up', p_last_at
            USING ERRCODE = 'CB001', DETAIL = 'clock_behind';
    END IF;
    RETURN p_last_at;
END
$$;

COMMENT ON FUNCTION centile_store.time_of_cut_off(integer, timestamptz) IS
'The time of a lane that is ahead of the clock, if it comes from a cut-off; an error otherwise. Example: SELECT centile_store.time_of_cut_off(1, ''2024-01-22 00:00Z'');';
