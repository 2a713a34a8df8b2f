-- Periods that were opened so far.
CREATE VIEW centile.periods AS
SELECT b.slug AS board, p.kind, p.label, p.starts_at, p.ends_at,
       CASE WHEN p.state = 'closed' THEN 'closed' WHEN p.ends_at <= statement_timestamp() THEN 'due' ELSE 'open' END AS state,
       centile_store.player_count(p.ranking_id) AS players, g.layout, p.id AS period_id, p.ranking_id
FROM centile_store.periods p
JOIN centile_store.boards b ON b.id = p.board_id
LEFT JOIN centile_store.rankings g ON g.id = p.ranking_id;

COMMENT ON VIEW centile.periods IS
'Periods of all boards with their players and whether they are open, due (over, not closed yet) or closed. Example: SELECT board, kind, label, state, players FROM centile.periods ORDER BY starts_at DESC, kind LIMIT 5;';
GRANT SELECT ON centile.periods TO centile_reader;
