CREATE OR REPLACE VIEW centile.combinations AS
SELECT b.slug AS board, c.join_rule, c.aggregate,
       (SELECT jsonb_agg(jsonb_build_object('board', x.slug, 'period', s.period, 'weight', s.weight) ORDER BY s.place)
        FROM centile_store.combination_sources s JOIN centile_store.boards x ON x.id = s.source_board_id
        WHERE s.board_id = c.board_id) AS sources,
       c.refresh, c.as_of, statement_timestamp() - c.as_of AS age, c.duration, p.archive_players AS players, p.archive_revision AS revision,
       'centile_archive.' || p.archive_name AS archive, 
       -- Readers may not call centile_store.shown_sources.
       (SELECT coalesce(jsonb_agg(jsonb_build_object('board', s.board, 'period', s.period, 'version', s.version) ORDER BY s.place), '[]')
        FROM jsonb_to_recordset(c.sources) AS s (place integer, board text, period text, version text)) AS source_versions,
       c.failures, c.failed_at, c.failure, c.defined_at, c.board_id
FROM centile_store.combinations c
JOIN centile_store.boards b ON b.id = c.board_id
LEFT JOIN centile_store.periods p ON p.board_id = c.board_id;

COMMENT ON VIEW centile.combinations IS
'Combined boards: their sources, how these are joined, aggregated and refreshed, the snapshot of the ranking, and the failures since. Example: SELECT board, join_rule, aggregate, sources, refresh, players, failures, failure FROM centile.combinations ORDER BY board;';
GRANT SELECT ON centile.combinations TO centile_reader;
