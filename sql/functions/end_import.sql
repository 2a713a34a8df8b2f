-- Says that an import has come to its end: the board's periods may be closed again. False when it was given up meanwhile.
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
'Ends an import. Example: SELECT centile_store.end_import(1);';
