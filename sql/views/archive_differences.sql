-- The archive has the ledger's values. Up to a thousand rows per closing. A NULL score means that
-- the player was absent on that side.
CREATE OR REPLACE VIEW centile.archive_differences AS
SELECT b.slug AS board, p.kind, p.label, d.revision, u.external_id AS user_id, d.archive_score, d.archive_reached_at,
       d.live_score, d.live_reached_at, d.found_at, p.segment, d.archive_tiebreak, d.live_tiebreak
FROM centile_store.archive_differences d
JOIN centile_store.periods p ON p.id = d.period_id
JOIN centile_store.boards b ON b.id = p.board_id
JOIN centile_store.users u ON u.id = d.user_id;

COMMENT ON VIEW centile.archive_differences IS
'Players whose live score differed from the ledger when a period was closed; normally none. Example: SELECT board, kind, label, user_id, archive_score, live_score FROM centile.archive_differences ORDER BY found_at DESC;';
GRANT SELECT ON centile.archive_differences TO centile_reader;
