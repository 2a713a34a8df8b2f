-- Writers share the lock, and name their lane: on a cluster (sql/cluster), it must be on this server.
-- A session that changes a board, its periods or its current rankings holds it exclusively. The lock lasts to the end of
-- the transaction. No session upgrades from shared to exclusive.
CREATE OR REPLACE FUNCTION centile_store.lock_structure(p_board_id integer, p_exclusive boolean, p_lane smallint DEFAULT NULL) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    -- Under the lock, a session must see what others have committed.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Centile writes under READ COMMITTED only' USING ERRCODE = 'CB409', HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    -- A crash must not lose an acknowledged score.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF p_exclusive THEN
        PERFORM pg_advisory_xact_lock(1128615508, p_board_id);
        -- Running batches start again.
        UPDATE centile_store.boards AS b SET structure_revision = b.structure_revision + 1 WHERE b.id = p_board_id RETURNING * INTO v_board;
    ELSE
        PERFORM pg_advisory_xact_lock_shared(1128615508, p_board_id);
        SELECT * INTO v_board FROM centile_store.boards WHERE id = p_board_id;
    END IF;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.lock_structure(integer, boolean, smallint) IS
'Takes a board''s structure lock for this transaction and returns the board. Example: SELECT (centile_store.lock_structure(1, true)).slug;';
