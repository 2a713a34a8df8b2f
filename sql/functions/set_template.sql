-- p_rules are rules of a board, described at centile_store.set_rules, and max_boards. A template that
-- exists changes as a board does: rules that scores depend on cannot change any more.
CREATE OR REPLACE FUNCTION centile.set_template(p_name text, p_pattern text, p_rules jsonb DEFAULT '{}', p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_template centile_store.templates;
    v_rules    jsonb := p_rules - 'max_boards';
    v_max      jsonb := p_rules -> 'max_boards';
    v_other    text;
BEGIN
    IF v_max IS NOT NULL AND (jsonb_typeof(v_max) <> 'number' OR v_max::text !~ '^[0-9]{1,9}$' OR v_max::integer NOT BETWEEN 1 AND 100000000) THEN
        RAISE EXCEPTION 'must be 1 to 100000000' USING ERRCODE = 'CB422', DETAIL = 'max_boards';
    ELSIF p_name !~ '^[a-z][a-z0-9_-]{0,39}$' THEN
        RAISE EXCEPTION 'must have up to 40 of a-z, 0-9, - and _, and begin with a letter' USING ERRCODE = 'CB422', DETAIL = 'name';
    END IF;
    PERFORM centile_store.lock_names();
    SELECT * INTO v_template FROM centile_store.templates t WHERE t.name = p_name;
    IF FOUND THEN
        IF p_pattern IS DISTINCT FROM (SELECT b.slug FROM centile_store.boards b WHERE b.id = v_template.board_id) THEN
            RAISE EXCEPTION 'cannot change' USING ERRCODE = 'CB422', DETAIL = 'pattern', HINT = 'Create another template.';
        END IF;
        PERFORM centile.update_board(p_pattern, v_rules, p_actor) WHERE v_rules <> '{}';
    ELSE
        v_other := (SELECT t.name FROM centile_store.templates t JOIN centile_store.boards b ON b.id = t.board_id
                    WHERE starts_with(b.slug, rtrim(p_pattern, '*')) OR starts_with(p_pattern, rtrim(b.slug, '*')));
        IF v_other IS NOT NULL THEN
            RAISE EXCEPTION 'some names would also match template %', v_other USING ERRCODE = 'CB409', DETAIL = 'template_overlaps', HINT = 'Choose a pattern that shares no names with it.';
        END IF;
        INSERT INTO centile_store.templates (board_id, name)
        VALUES (centile_store.add_board(p_pattern, v_rules, true, p_actor), p_name)
        RETURNING * INTO v_template;
    END IF;
    UPDATE centile_store.templates t SET max_boards = v_max::integer WHERE t.board_id = v_template.board_id AND v_max IS NOT NULL;
    RETURN v_template.board_id;
END
$$;

COMMENT ON FUNCTION centile.set_template(text, text, jsonb, text) IS
'Creates or changes a template: the first score on a name that matches its pattern creates a board with its rules. The pattern is the beginning of these names and *. Example: SELECT centile.set_template(''level'', ''level-*'', ''{"mode": "best", "max_boards": 5000}'');';
