SELECT kind AS "kind!", label AS "label!", nullif(starts_at, '-infinity') AS starts_at, nullif(ends_at, 'infinity') AS ends_at, state AS "state!"
FROM (SELECT p.*, row_number() OVER (PARTITION BY kind ORDER BY starts_at DESC) AS place FROM centile.periods p WHERE board = $1) p
WHERE place <= $2
ORDER BY array_position('{all_time,season,month,week,day}'::text[], kind), starts_at DESC
