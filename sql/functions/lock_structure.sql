-- The structure lock of a board: shared by its writers, exclusive for whoever opens periods or changes a layout. Held to
-- the end of the transaction. Nobody upgrades from shared to exclusive.
CREATE FUNCTION centile_store.lock_structure(p_board_id integer, p_exclusive boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_exclusive THEN
        PERFORM pg_advisory_xact_lock(1128615508, p_board_id);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(1128615508, p_board_id);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.lock_structure(integer, boolean) IS
'Takes a board''s structure lock for this transaction. Example: SELECT centile_store.lock_structure(1, true);';
