-- A board of a template has the template's rules, and its own id and slug.
CREATE OR REPLACE FUNCTION centile_store.board_named(p_slug text, p_or_template boolean DEFAULT false) RETURNS centile_store.boards
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_board centile_store.boards;
    v_named centile_store.template_boards;
BEGIN
    SELECT * INTO v_board FROM centile_store.boards b WHERE b.slug = p_slug AND b.deleted_at IS NULL AND (p_or_template OR NOT b.is_template);
    IF NOT FOUND THEN
        SELECT * INTO v_named FROM centile_store.template_boards WHERE slug = p_slug;
        SELECT * INTO v_board FROM centile_store.boards WHERE id = v_named.template_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no board %', quote_literal(p_slug)
                USING ERRCODE = 'CB404', DETAIL = 'board', HINT = 'SELECT slug FROM centile.boards lists them.';
        END IF;
        v_board.id := v_named.id;
        v_board.slug := v_named.slug;
        v_board.title := v_named.slug;
    END IF;
    RETURN v_board;
END
$$;

COMMENT ON FUNCTION centile_store.board_named(text, boolean) IS
'The row of a board; an error if it does not exist. Example: SELECT (centile_store.board_named(''main'')).mode;';
