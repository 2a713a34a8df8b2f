CREATE OR REPLACE VIEW centile.league_history AS
SELECT l.name AS league, b.slug AS board, p.kind || ':' || p.label AS period, u.external_id AS user_id, l.divisions[m.division] AS division, m.cohort_id,
       m.rank, m.score, l.divisions[m.division_after] AS next_division, p.ends_at
FROM centile_store.league_members m
JOIN centile_store.leagues l ON l.id = m.league_id AND l.deleted_at IS NULL
JOIN centile_store.boards b ON b.id = l.board_id
JOIN centile_store.periods p ON p.id = m.period_id AND p.state = 'closed'
JOIN centile_store.users u ON u.id = m.user_id
WHERE m.division_after IS NOT NULL;

COMMENT ON VIEW centile.league_history IS
'Results of closed periods of leagues. Without a cohort: an idle player who was relegated. Filter by league and user_id. Example: SELECT period, division, rank, score, next_division FROM centile.league_history WHERE league = ''months'' AND user_id = ''eve'' ORDER BY ends_at DESC;';
GRANT SELECT ON centile.league_history TO centile_reader;
