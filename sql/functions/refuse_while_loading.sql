-- Refuses what another session wants of a board while an import fills it as a whole. Should the import's session be dead, its mark counts
-- for nothing: what it did is rolled back.
CREATE FUNCTION centile_store.refuse_while_loading(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    SELECT * INTO v_board FROM centile_store.boards b WHERE b.id = p_board_id AND b.loading_import_id IS NOT NULL;
    IF FOUND AND EXISTS (
           SELECT FROM pg_catalog.pg_locks l
           WHERE l.locktype = 'advisory' AND l.classid = 1128615509 AND l.objid = v_board.loading_import_id AND l.objsubid = 2
             AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
             AND l.pid <> pg_backend_pid()) THEN
        RAISE EXCEPTION 'board % is being loaded: nothing else is written on it until that has ended', v_board.slug
            USING ERRCODE = 'CB503', HINT = 'SELECT * FROM centile.imports WHERE ended_at IS NULL AND abandoned_at IS NULL shows the import.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.refuse_while_loading(integer) IS
'Raises CB503 while another session loads a board. Example: SELECT centile_store.refuse_while_loading(1);';
