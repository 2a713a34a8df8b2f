CREATE OR REPLACE VIEW centile.quarantine AS
SELECT q.id AS quarantine_id, b.slug AS board, u.external_id AS user_id, q.points, coalesce(q.second_number, q.tiebreak) AS tiebreak, q.reason, q.external_id AS event_id,
       q.rule, q.detail, q.submitted_at, q.state, q.decided_at, q.decided_by, q.decided_why, q.transaction_id,
       CASE WHEN u.erased_at IS NULL THEN q.metadata::jsonb END AS metadata
FROM centile_store.quarantine q
JOIN centile_store.board_names b ON b.id = q.board_id
JOIN centile_store.users u ON u.id = q.user_id;

COMMENT ON VIEW centile.quarantine IS
'Events that broke a rule of their board: waiting, accepted into the ledger, or rejected. Example: SELECT board, user_id, points, rule, detail, state FROM centile.quarantine ORDER BY quarantine_id;';
GRANT SELECT ON centile.quarantine TO centile_reader;
