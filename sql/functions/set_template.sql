-- p_rules is described at centile_store.set_rules. A template that exists changes as a board does: rules
-- that scores depend on cannot change any more. p_max_boards: NULL for no change, or 1,000,000.
CREATE OR REPLACE FUNCTION centile.set_template(p_name text, p_pattern text, p_rules jsonb DEFAULT '{}', p_max_boards integer DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_template centile_store.templates;
    v_board    centile_store.boards;
    v_other    text;
BEGIN
    IF p_name IS NULL OR p_pattern IS NULL THEN
        RAISE EXCEPTION 'is missing' USING ERRCODE = 'CB422', DETAIL = CASE WHEN p_name IS NULL THEN 'name' ELSE 'pattern' END;
    END IF;
    IF to_regclass('centile_lanes.groups') IS NOT NULL THEN
        RAISE EXCEPTION 'a cluster has no templates' USING ERRCODE = 'CB409';
    END IF;
    PERFORM centile_store.lock_names();
    SELECT * INTO v_template FROM centile_store.templates t WHERE t.name = p_name;
    IF FOUND THEN
        SELECT * INTO STRICT v_board FROM centile_store.boards b WHERE b.id = v_template.board_id;
        IF p_pattern IS DISTINCT FROM v_board.slug THEN
            RAISE EXCEPTION 'cannot change' USING ERRCODE = 'CB422', DETAIL = 'pattern', HINT = 'Create another template.';
        END IF;
        -- So that the same call may be repeated.
        p_rules := p_rules - CASE WHEN p_rules -> 'periods' = to_jsonb(v_board.periods) THEN 'periods' ELSE '' END;
        PERFORM centile.update_board(p_pattern, p_rules, p_actor) WHERE p_rules <> '{}';
    ELSE
        v_other := (SELECT t.name FROM centile_store.templates t JOIN centile_store.boards b ON b.id = t.board_id
                    WHERE starts_with(b.slug, rtrim(p_pattern, '*')) OR starts_with(p_pattern, rtrim(b.slug, '*')));
        IF v_other IS NOT NULL THEN
            RAISE EXCEPTION 'some names would also match template %', v_other USING ERRCODE = 'CB409', HINT = 'Choose a pattern that shares no names with it.';
        END IF;
        INSERT INTO centile_store.templates (board_id, name)
        VALUES (centile_store.add_board(p_pattern, p_rules, true, p_actor), p_name)
        RETURNING * INTO v_template;
        PERFORM centile.ensure_ledger_months();
    END IF;
    UPDATE centile_store.templates t SET max_boards = p_max_boards WHERE t.board_id = v_template.board_id AND t.max_boards <> p_max_boards;
    RETURN v_template.board_id;
END
$$;

COMMENT ON FUNCTION centile.set_template(text, text, jsonb, integer, text) IS
'Creates or changes a template: the first score on a name that matches its pattern creates a board with its rules. The pattern is the beginning of these names and *. Example: SELECT centile.set_template(''level'', ''level-*'', ''{"mode": "best"}'', 5000);';
