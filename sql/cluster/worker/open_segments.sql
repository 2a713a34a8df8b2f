-- The coordinator opens them, in a transaction of its own.
CREATE OR REPLACE FUNCTION centile_store.open_segments(p_board_id integer, p_period_ids bigint[], p_segments text[], p_with_closed boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN centile_lanes.on_coordinator(format('SELECT centile_store.open_segments(%s, %L, %L, %L)', p_board_id, p_period_ids, p_segments, p_with_closed));
END
$$;

COMMENT ON FUNCTION centile_store.open_segments(integer, bigint[], text[], boolean) IS
'Opens segments of periods, and returns their number.';
