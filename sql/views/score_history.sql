CREATE OR REPLACE VIEW centile.score_history AS
SELECT t.id AS transaction_id, b.slug AS board, u.external_id AS user_id, t.kind, t.points, coalesce(t.second_number, t.tiebreak) AS tiebreak, t.reason, t.voids_id,
       t.occurred_at, t.lane, t.batch, CASE WHEN u.erased_at IS NULL THEN t.metadata::jsonb END AS metadata
FROM centile_store.score_transactions t
JOIN centile_store.board_names b ON b.id = t.board_id
JOIN centile_store.users u ON u.id = t.user_id;

COMMENT ON VIEW centile.score_history IS
'Every transaction in the ledger: scores, voids, resets, bans, unbans. Example: SELECT transaction_id, kind, points, reason, occurred_at FROM centile.score_history WHERE board = ''main'' AND user_id = ''ann'' ORDER BY occurred_at DESC LIMIT 5;';
GRANT SELECT ON centile.score_history TO centile_reader;
