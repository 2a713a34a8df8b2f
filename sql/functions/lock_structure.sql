-- The structure lock of a board: shared by its writers, exclusive for whoever opens periods or changes a layout. Held to
-- the end of the transaction. Nobody upgrades from shared to exclusive. A load holds it for minutes, and wants nobody beside it: all
-- others are refused at once, before they would wait, and again when they have waited. Gives the board as it is under the lock.
CREATE FUNCTION centile_store.lock_structure(p_board_id integer, p_exclusive boolean) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    -- Whoever holds the lock looks again at what others did before.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'Centile writes under read committed only' USING ERRCODE = 'CB409', HINT = 'SET default_transaction_isolation = ''read committed''.';
    END IF;
    -- A score is acknowledged, and read by others, once it is committed: it must not be lost in a crash after that.
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF p_exclusive AND NOT pg_try_advisory_xact_lock(1128615508, p_board_id) THEN
        PERFORM centile_store.refuse_while_loading(p_board_id);
        PERFORM pg_advisory_xact_lock(1128615508, p_board_id);
    ELSIF NOT p_exclusive AND NOT pg_try_advisory_xact_lock_shared(1128615508, p_board_id) THEN
        PERFORM centile_store.refuse_while_loading(p_board_id);
        PERFORM pg_advisory_xact_lock_shared(1128615508, p_board_id);
    END IF;
    IF p_exclusive THEN
        -- Batches that began before are begun anew.
        UPDATE centile_store.boards AS b SET structure_revision = b.structure_revision + 1 WHERE b.id = p_board_id RETURNING * INTO v_board;
    ELSE
        SELECT * INTO v_board FROM centile_store.boards WHERE id = p_board_id;
    END IF;
    IF v_board.loading_import_id IS NOT NULL THEN
        PERFORM centile_store.refuse_while_loading(p_board_id);
    END IF;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.lock_structure(integer, boolean) IS
'Takes a board''s structure lock for this transaction; gives the board. Example: SELECT (centile_store.lock_structure(1, true)).slug;';
