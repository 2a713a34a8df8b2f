SELECT label AS "name!", starts_at AS "starts_at!", ends_at AS "ends_at!", CASE state WHEN 'closing' THEN 'due' ELSE state END AS "state!"
FROM centile.periods
WHERE board = $1 AND kind = 'season' AND segment = '' AND ($2::text IS NULL OR label = $2)
ORDER BY starts_at, label
