-- As on a single server, but only for writers, and only while the lane is on this server. When the
-- coordinator takes the lock, it updates the board's copy on every server, and a trigger takes it there.
CREATE OR REPLACE FUNCTION centile_store.lock_structure(p_board_id integer, p_exclusive boolean, p_lane smallint DEFAULT NULL) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    IF p_exclusive THEN
        RAISE EXCEPTION 'only the coordinator of a cluster changes the structure of a board' USING ERRCODE = 'CB409';
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Centile writes under READ COMMITTED only' USING ERRCODE = 'CB409', HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock_shared(1128615508, p_board_id);
    SELECT * INTO v_board FROM centile_store.boards b WHERE b.id = p_board_id;
    PERFORM centile_lanes.hold(p_lane);
    -- Later rows of the board get higher ids than those that the coordinator has seen. While nextval
    -- writes WAL, a reader may see a last_value that is up to 32 ids too high.
    PERFORM centile_lanes.draw_above(l.id) FROM centile_store.last_id l CROSS JOIN centile_lanes.ids i
    WHERE l.id >= i.last_value - 32 * 64;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.lock_structure(integer, boolean, smallint) IS
'Takes a board''s structure lock for this transaction and returns the board.';
