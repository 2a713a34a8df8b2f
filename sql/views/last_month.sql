-- The live standings until the period is closed, then its archive. No rows if there are no scores,
-- or if retention has dropped the archive.
CREATE OR REPLACE VIEW centile.last_month AS
SELECT b.slug AS board, p.label,
       CASE WHEN p.state = 'closed' THEN 'closed' WHEN p.cut_off_at IS NOT NULL THEN 'closing' ELSE 'due' END AS state,
       r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at
FROM centile_store.boards b
CROSS JOIN LATERAL centile.period_before('month', statement_timestamp(), b.time_zone) AS x
JOIN centile_store.periods p ON p.board_id = b.id AND p.kind = 'month' AND p.label = x.label AND p.segment = ''
-- By both names, so that PostgreSQL reads the rows of no other period.
CROSS JOIN LATERAL centile.ranking(b.slug, p.kind || ':' || x.label) AS r
WHERE 'month' = ANY (b.periods) AND (p.ranking_id IS NOT NULL OR p.frozen_top IS NOT NULL);

COMMENT ON VIEW centile.last_month IS
'The standings of every board''s previous month, closed or not. Example: SELECT state, position, rank, user_id, score FROM centile.last_month WHERE board = ''ladder'' ORDER BY position LIMIT 3;';
GRANT SELECT ON centile.last_month TO centile_reader;
