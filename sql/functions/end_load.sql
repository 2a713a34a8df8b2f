-- Ends a load, in its last transaction: the board takes scores again. Without success there is nothing of it, and nothing that could be gone on with.
CREATE FUNCTION centile_store.end_load(p_import_id bigint, p_has_succeeded boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.imports
    SET ended_at = CASE WHEN p_has_succeeded THEN clock_timestamp() END, abandoned_at = CASE WHEN NOT p_has_succeeded THEN clock_timestamp() END
    WHERE id = p_import_id AND ended_at IS NULL AND abandoned_at IS NULL;
    UPDATE centile_store.boards SET loading_import_id = NULL WHERE loading_import_id = p_import_id;
END
$$;

COMMENT ON FUNCTION centile_store.end_load(bigint, boolean) IS
'Ends a load. Example: SELECT centile_store.end_load(centile_store.begin_load(centile.create_board(''fresh''), ''scores.csv''), true);';
