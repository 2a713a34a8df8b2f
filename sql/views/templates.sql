CREATE OR REPLACE VIEW centile.templates AS
SELECT t.name, b.slug AS pattern, t.boards, t.max_boards, b.id AS board_id, to_jsonb(b) - '{id,slug,is_template,deleted_at,has_league,structure_revision,layout_bounds}'::text[] AS rules
FROM centile_store.templates t
JOIN centile_store.boards b ON b.id = t.board_id;

COMMENT ON VIEW centile.templates IS
'Templates, with the rules of their boards, and the number of boards so far. Example: SELECT name, pattern, boards, max_boards FROM centile.templates ORDER BY name;';
GRANT SELECT ON centile.templates TO centile_reader;
