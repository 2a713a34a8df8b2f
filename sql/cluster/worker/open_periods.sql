-- The coordinator opens them, in a transaction of its own.
CREATE OR REPLACE FUNCTION centile_store.open_periods(p_board_id integer, p_times timestamptz[]) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN centile_lanes.on_coordinator(format('SELECT centile_store.open_periods(%s, %L)', p_board_id, p_times));
END
$$;

COMMENT ON FUNCTION centile_store.open_periods(integer, timestamptz[]) IS
'Opens the periods of a board that hold these times, and returns their number.';
