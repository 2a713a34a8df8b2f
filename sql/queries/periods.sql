SELECT kind AS "kind!", label AS "label!", nullif(starts_at, '-infinity') AS starts_at, nullif(ends_at, 'infinity') AS ends_at, state AS "state!"
FROM (SELECT p.*, row_number() OVER (PARTITION BY kind ORDER BY ends_at DESC) AS place FROM centile.periods p
      -- A snapshot that is being taken cannot be read yet.
      WHERE board = $1 AND (kind <> 'snapshot' OR state = 'closed')) p
WHERE place <= $2
ORDER BY array_position('{all_time,season,year,quarter,month,week,day,hour,snapshot}'::text[], kind), ends_at DESC
