CREATE OR REPLACE FUNCTION centile_store.end_import(p_import_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.imports SET ended_at = clock_timestamp()
    WHERE id = p_import_id AND ended_at IS NULL AND abandoned_at IS NULL;
    RETURN FOUND;
END
$$;

COMMENT ON FUNCTION centile_store.end_import(bigint) IS
'Ends an import, and returns whether it was still under way; the board''s periods can then be closed. Example: SELECT centile_store.end_import(1);';
