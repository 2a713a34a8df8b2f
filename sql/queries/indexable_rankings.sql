-- The current rankings of the open whole periods of a board. A segment is loaded when it is read.
SELECT p.id AS "period_id!", p.ranking_id AS "ranking_id!", p.kind AS "kind!", p.label AS "label!"
FROM centile_store.periods p
WHERE p.board_id = $1 AND p.segment = '' AND p.ranking_id IS NOT NULL
ORDER BY p.id
