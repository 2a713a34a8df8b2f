CREATE OR REPLACE FUNCTION centile_store.board_named(p_slug text) RETURNS centile_store.boards
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    SELECT * INTO v_board FROM centile_store.boards WHERE slug = p_slug;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no board %', quote_literal(p_slug)
            USING ERRCODE = 'CB404', DETAIL = 'board', HINT = 'SELECT slug FROM centile.boards lists them.';
    END IF;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.board_named(text) IS
'The row of a board; an error if it does not exist. Example: SELECT (centile_store.board_named(''main'')).mode;';
