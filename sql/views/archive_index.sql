-- One materialized view per closed period that retention has not dropped.
CREATE OR REPLACE VIEW centile.archive_index AS
SELECT b.slug AS board, p.kind, p.label, 'centile_archive.' || p.archive_name AS archive, p.archive_revision AS revision,
       p.archive_players AS players, p.archive_differences AS differences, p.cut_off_at, p.closed_at,
       pg_total_relation_size(c.oid) AS size, p.corrected_at IS NOT NULL AS needs_refresh, p.id AS period_id, p.segment
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
JOIN pg_catalog.pg_class c ON c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p.archive_name
WHERE p.frozen_top IS NOT NULL;

COMMENT ON VIEW centile.archive_index IS
'Every archive with its name, revision, players, differences, size in bytes, and whether it lacks a correction. Example: SELECT board, kind, label, archive, revision, players, differences, size, needs_refresh FROM centile.archive_index ORDER BY board, kind, label;';
GRANT SELECT ON centile.archive_index TO centile_reader;
