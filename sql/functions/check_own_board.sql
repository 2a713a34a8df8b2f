CREATE OR REPLACE FUNCTION centile_store.check_own_board(p_board centile_store.boards) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF centile_store.owner_of(p_board.id) <> p_board.id THEN
        RAISE EXCEPTION 'board % belongs to a template, whose rules apply', p_board.slug USING ERRCODE = 'CB409', DETAIL = 'board_of_template', HINT = 'Change the template.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_own_board(centile_store.boards) IS
'Raises CB409 for a board of a template. Example: SELECT centile_store.check_own_board(b) FROM centile_store.boards b WHERE b.slug = ''main'';';
