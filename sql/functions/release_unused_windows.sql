-- Handles one board per call, so that no other board waits; call it until it returns false.
CREATE OR REPLACE FUNCTION centile_store.release_unused_windows() RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_board_id integer := (SELECT min(u.board_id) FROM centile_store.unused_windows() u);
BEGIN
    IF v_board_id IS NULL THEN
        RETURN false;
    END IF;
    PERFORM centile_store.lock_buckets(v_board_id);
    PERFORM centile_store.lock_structure(v_board_id, true);
    PERFORM centile_store.release_windows(v_board_id);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.release_unused_windows() IS
'Releases the unused rolling windows of a board, and returns whether there were any. Example: SELECT centile_store.release_unused_windows();';
GRANT EXECUTE ON FUNCTION centile_store.release_unused_windows() TO centile_operator;
