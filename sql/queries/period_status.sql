-- Periods that are not closed, and closed ones that need attention: waiting ones first, then by
-- board. Open segments are left out.
SELECT s.board AS "board!", s.kind AS "kind!", concat_ws('@', s.label, nullif(s.segment, '')) AS "label!", s.state AS "state!", nullif(s.ends_at, 'infinity') AS ends_at,
       coalesce(s.players, 0) AS "players!", s.version, coalesce(s.differences, 0) AS "differences!", s.needs_refresh AS "needs_refresh!"
FROM centile.periods s
WHERE (s.state <> 'closed' AND (s.segment = '' OR s.state <> 'open')) OR s.differences > 0 OR s.needs_refresh
ORDER BY s.state = 'open', s.board, array_position('{all_time,season,year,quarter,month,week,day,hour,rolling,snapshot}'::text[], s.kind), s.ends_at
LIMIT $1
