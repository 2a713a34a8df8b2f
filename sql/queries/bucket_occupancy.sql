-- The buckets of each open ranking of a board, without segments: a hundred rows a ranking, worst
-- scores first.
SELECT o.kind AS "kind!", o.label AS "label!", o.bucket AS "bucket!", o.players AS "players!", o.from_score, o.to_score
FROM centile.bucket_occupancy o
WHERE o.board = $1 AND o.segment = ''
ORDER BY array_position('{all_time,season,year,quarter,month,week,day,hour}'::text[], o.kind), o.label DESC, o.place
LIMIT $2
