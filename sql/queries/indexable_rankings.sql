-- The current rankings of the open whole periods of a board. A segment is loaded when it is read.
SELECT p.id AS "period_id!", p.ranking_id AS "ranking_id!", p.kind AS "kind!", p.label AS "label!", g.has_bucket_rows AS "has_bucket_rows!"
FROM centile_store.periods p
JOIN centile_store.rankings g ON g.id = p.ranking_id
WHERE p.board_id = $1 AND p.segment = ''
ORDER BY p.id
