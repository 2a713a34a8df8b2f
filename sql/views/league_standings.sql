CREATE OR REPLACE VIEW centile.league_standings AS
SELECT l.name AS league, b.slug AS board, p.kind || ':' || p.label AS period, l.divisions[r.division] AS division, r.cohort_id, r.rank,
       u.external_id AS user_id, u.name AS user_name, r.score
FROM centile_store.leagues l
JOIN centile_store.boards b ON b.id = l.board_id
JOIN centile_store.periods p ON p.id = l.period_id
JOIN centile_store.cohort_rows r ON r.league_id = l.id AND r.period_id = l.period_id
JOIN centile_store.users u ON u.id = r.user_id
WHERE l.deleted_at IS NULL;

COMMENT ON VIEW centile.league_standings IS
'Members of the current cohorts of leagues, with their ranks among each other. Filter by cohort_id. Example: SELECT division, cohort_id, rank, user_id, score FROM centile.league_standings WHERE league = ''months'' ORDER BY cohort_id, rank;';
GRANT SELECT ON centile.league_standings TO centile_reader;
