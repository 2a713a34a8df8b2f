CREATE OR REPLACE FUNCTION centile_store.board_rules(p_board_id integer) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT to_jsonb(b) - '{id,created_at,structure_revision,is_template,deleted_at,has_league}'::text[] || coalesce(centile_store.combination_rules(p_board_id), '{}')
    FROM centile_store.boards b WHERE b.id = p_board_id
$$;

COMMENT ON FUNCTION centile_store.board_rules(integer) IS
'The rules of a board in the form of the audit log. Example: SELECT centile_store.board_rules(1) ->> ''mode'' AS mode;';
