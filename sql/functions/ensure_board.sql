-- In a transaction before that of the board's first score. It must be durable: other instances keep the
-- id of a name in memory.
CREATE OR REPLACE FUNCTION centile_store.ensure_board(p_slug text) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_template centile_store.templates;
    v_id       integer := (SELECT t.id FROM centile_store.template_boards t WHERE t.slug = p_slug);
BEGIN
    IF v_id IS NOT NULL THEN
        RETURN v_id;
    END IF;
    -- Sessions that create boards of a template wait for each other.
    SELECT * INTO v_template FROM centile_store.templates t WHERE t.board_id = centile_store.template_of(p_slug) FOR UPDATE;
    IF NOT FOUND THEN
        RETURN (centile_store.board_named(p_slug)).id;
    END IF;
    INSERT INTO centile_store.template_boards (template_id, slug) VALUES (v_template.board_id, p_slug)
    ON CONFLICT ON CONSTRAINT template_boards_slug_key DO NOTHING
    RETURNING id INTO v_id;
    IF v_id IS NULL THEN
        RETURN (SELECT t.id FROM centile_store.template_boards t WHERE t.slug = p_slug);
    ELSIF v_template.boards >= v_template.max_boards THEN
        RAISE EXCEPTION 'template % has its maximum of % boards', v_template.name, v_template.max_boards
            USING ERRCODE = 'CB409', DETAIL = 'too_many_boards', HINT = 'Raise max_boards of the template, or delete boards.';
    END IF;
    UPDATE centile_store.templates t SET boards = t.boards + 1 WHERE t.board_id = v_template.board_id;
    RETURN v_id;
END
$$;

COMMENT ON FUNCTION centile_store.ensure_board(text) IS
'Creates a board of a template, unless it exists, and returns its id. Example: SELECT centile_store.ensure_board(''quest-1'');';
