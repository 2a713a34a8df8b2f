-- The opened segments of a period, in order.
SELECT p.segment
FROM centile_store.periods p
WHERE p.board_id = $1 AND p.kind = $2 AND p.label = $3 AND p.segment <> ''
ORDER BY p.segment
LIMIT $4
