CREATE OR REPLACE VIEW centile.imports AS
SELECT i.id AS import_id, b.slug AS board, i.source, i.started_at, i.ended_at, i.abandoned_at
FROM centile_store.imports i
JOIN centile_store.boards b ON b.id = i.board_id;

COMMENT ON VIEW centile.imports IS
'Imports of all boards; an import that has neither ended nor been abandoned prevents the board''s periods from closing. Example: SELECT board, source, ended_at IS NOT NULL AS has_ended, abandoned_at IS NOT NULL AS is_abandoned FROM centile.imports ORDER BY import_id;';
GRANT SELECT ON centile.imports TO centile_reader;
