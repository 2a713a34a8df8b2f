CREATE OR REPLACE FUNCTION centile_store.combination_rules(p_board_id integer) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_build_object('join', c.join_rule, 'aggregate', c.aggregate, 'refresh', c.refresh, 'sources', (
        SELECT jsonb_agg(jsonb_build_object('board', b.slug, 'period', s.period, 'weight', s.weight) ORDER BY s.place)
        FROM centile_store.combination_sources s JOIN centile_store.boards b ON b.id = s.source_board_id
        WHERE s.board_id = c.board_id))
    FROM centile_store.combinations c WHERE c.board_id = p_board_id
$$;

COMMENT ON FUNCTION centile_store.combination_rules(integer) IS
'The definition of a combined board in the form of the audit log. Example: SELECT centile_store.combination_rules(4) ->> ''join'' AS join_rule;';
