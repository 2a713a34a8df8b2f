-- Ranks by SQL are as old as the oldest batch that is not applied. Scores without a rank are current.
CREATE OR REPLACE VIEW centile.apply_lag AS
SELECT b.slug AS board, n::smallint AS lane, coalesce(a.batch, 0) AS applied_batch, count(c.batch) AS batches_behind, min(c.written_at) AS behind_since
FROM centile_store.boards b
CROSS JOIN LATERAL generate_series(0, b.lanes - 1) AS n
LEFT JOIN LATERAL (SELECT a.batch FROM centile_store.applied a WHERE a.board_id = b.id AND a.lane = n ORDER BY a.batch DESC LIMIT 1) a ON true
LEFT JOIN centile_store.batch_log c ON c.board_id = b.id AND c.lane = n AND c.batch > coalesce(a.batch, 0)
GROUP BY b.id, b.slug, n, a.batch;

COMMENT ON VIEW centile.apply_lag IS
'How far bucket rows and counts are behind the scores, by lane. behind_since: time of the oldest batch that is not applied; NULL if all are. Example: SELECT board, lane, batches_behind, now() - behind_since AS age FROM centile.apply_lag WHERE batches_behind > 0;';
GRANT SELECT ON centile.apply_lag TO centile_reader;
