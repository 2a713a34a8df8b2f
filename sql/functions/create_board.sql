CREATE OR REPLACE FUNCTION centile.create_board(p_slug text, p_rules jsonb DEFAULT '{}', p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.lock_names();
    IF centile_store.template_of(p_slug) IS NOT NULL THEN
        RAISE EXCEPTION 'board % would belong to template %', p_slug, (SELECT t.name FROM centile_store.templates t WHERE t.board_id = centile_store.template_of(p_slug))
            USING ERRCODE = 'CB409', DETAIL = 'board_of_template', HINT = 'The first score creates it. For a board of its own, choose a name that matches no template.';
    END IF;
    RETURN centile_store.add_board(p_slug, p_rules, false, p_actor);
END
$$;

COMMENT ON FUNCTION centile.create_board(text, jsonb, text) IS
'Creates a board with its lanes and returns its id. Rules have the names and defaults of the HTTP API, except that mode is sum and lanes is 2 by default. Example: SELECT centile.create_board(''laps'', ''{"mode": "best", "order": "asc", "ties": "first"}'');';
