-- Also ends interrupted imports of the same file: this one has imported all of it.
CREATE OR REPLACE FUNCTION centile_store.end_import(p_import_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.imports SET ended_at = clock_timestamp()
    WHERE id = p_import_id AND ended_at IS NULL AND abandoned_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE centile_store.imports i SET ended_at = clock_timestamp()
    FROM centile_store.imports e
    WHERE e.id = p_import_id AND i.board_id = e.board_id AND i.source = e.source AND i.source <> 'stdin'
      AND i.ended_at IS NULL AND i.abandoned_at IS NULL AND NOT centile_store.is_locked(1128615509, i.id);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.end_import(bigint) IS
'Ends an import and interrupted ones of the same file, and returns whether it was still under way; the board''s periods can then be closed. Example: SELECT centile_store.end_import(1);';
