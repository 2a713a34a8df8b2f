CREATE OR REPLACE VIEW centile_store.board_names AS
SELECT b.id, b.slug FROM centile_store.boards b
UNION ALL
SELECT t.id, t.slug FROM centile_store.template_boards t;

COMMENT ON VIEW centile_store.board_names IS
'Names of all boards, those of templates included, and the patterns of templates. Example: SELECT slug FROM centile_store.board_names WHERE id = 1;';
GRANT SELECT ON centile_store.board_names TO centile_service;
