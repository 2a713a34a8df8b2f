-- As on plain PostgreSQL, but always exclusively. Writers share the lock on the server that has their
-- lane: the update changes the copies of the board's row on all servers, and waits for the writers
-- there.
CREATE OR REPLACE FUNCTION centile_store.lock_structure(p_board_id integer, p_exclusive boolean, p_lane smallint DEFAULT NULL) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    IF p_lane IS NOT NULL THEN
        -- An instance that has not found the workers yet may try again.
        RAISE EXCEPTION 'the coordinator of a cluster does not write scores' USING ERRCODE = 'CB001', HINT = 'Use the service or its commands.';
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Centile writes under READ COMMITTED only' USING ERRCODE = 'CB409', HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(1128615508, p_board_id);
    UPDATE centile_store.boards AS b SET structure_revision = b.structure_revision + 1 WHERE b.id = p_board_id RETURNING * INTO v_board;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.lock_structure(integer, boolean, smallint) IS
'Takes a board''s structure lock for this transaction and returns the board.';
