SELECT kind AS "kind!", label AS "label!", nullif(starts_at, '-infinity') AS starts_at, nullif(ends_at, 'infinity') AS ends_at, CASE state WHEN 'closing' THEN 'due' ELSE state END AS "state!"
FROM (SELECT p.*, row_number() OVER (PARTITION BY kind ORDER BY ends_at DESC) AS place FROM centile.periods p
      -- Omits what cannot be read: a snapshot that is being taken, and a window that is being filled, is
      -- next, or was released.
      WHERE board = (SELECT b.slug FROM centile_store.boards b WHERE b.id = $1) AND segment = '' AND (kind <> 'snapshot' OR state = 'closed')
        AND (kind <> 'rolling' OR archive IS NOT NULL OR (ranking_id IS NOT NULL AND state <> 'upcoming'))) p
WHERE place <= $2
ORDER BY array_position('{all_time,season,year,quarter,month,week,day,hour,rolling,snapshot}'::text[], kind), ends_at DESC
