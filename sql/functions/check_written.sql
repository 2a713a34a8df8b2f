CREATE OR REPLACE FUNCTION centile_store.check_written(p_board centile_store.boards) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_board.mode = 'combined' THEN
        RAISE EXCEPTION 'board % is computed from other boards: change those', p_board.slug USING ERRCODE = 'CB409', DETAIL = 'board_combined';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_written(centile_store.boards) IS
'Raises an error if a board is computed from others. Example: SELECT centile_store.check_written(b) FROM centile_store.boards b WHERE b.slug = ''main'';';
