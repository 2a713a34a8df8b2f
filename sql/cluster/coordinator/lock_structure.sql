-- As on a single server, but always exclusively. Fails while a worker with lanes lacks a period of the
-- board.
CREATE OR REPLACE FUNCTION centile_store.lock_structure(p_board_id integer, p_exclusive boolean, p_lane smallint DEFAULT NULL) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    IF p_lane IS NOT NULL THEN
        -- An instance that has not found the workers yet may try again.
        RAISE EXCEPTION 'the coordinator of a cluster does not write scores' USING ERRCODE = 'CB001', HINT = 'Use the service or its commands.';
    END IF;
    v_board := centile_lanes.lock_on_servers(p_board_id, '{}');
    IF EXISTS (SELECT FROM centile_lanes.uncopied_periods m JOIN centile_lanes.groups g USING (node) JOIN centile_store.periods p ON p.id = m.period_id
               WHERE p.board_id = p_board_id) THEN
        RAISE EXCEPTION 'a worker lacks periods of board %', v_board.slug USING ERRCODE = 'CB001', HINT = 'Retry when the worker is up and an instance has copied the periods to it.';
    END IF;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.lock_structure(integer, boolean, smallint) IS
'Takes a board''s structure lock for this transaction and returns the board.';
