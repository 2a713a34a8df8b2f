-- A player's ledger, newest first, from a place in it downwards.
SELECT t.id AS "transaction_id!", t.kind AS "kind!", t.points, coalesce(t.second_number, t.tiebreak) AS tiebreak, t.reason, t.voids_id AS voids, t.occurred_at AS "occurred_at!",
       CASE WHEN NOT EXISTS (SELECT FROM centile_store.users u WHERE u.id = t.user_id AND u.erased_at IS NOT NULL) THEN t.metadata::text END AS metadata
FROM centile_store.score_transactions t
WHERE t.board_id = $1 AND t.user_id = $2 AND ($6 OR t.kind = 'score') AND (t.occurred_at, t.id) < (coalesce($3, 'infinity'::timestamptz), coalesce($4, 9223372036854775807))
ORDER BY t.occurred_at DESC, t.id DESC
LIMIT $5
