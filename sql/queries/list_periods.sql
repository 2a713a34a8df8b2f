SELECT p.kind AS "kind!", p.label AS "label!", nullif(p.starts_at, '-infinity') AS starts_at, nullif(p.ends_at, 'infinity') AS ends_at, p.state AS "state!"
FROM centile.periods p
WHERE p.board = $1 AND ($2::text IS NULL OR p.kind = $2)
  AND ($3::text IS NULL OR (p.starts_at, p.kind, p.label) < (
      SELECT l.starts_at, l.kind, l.label FROM centile.periods l WHERE l.board = $1 AND l.kind = $3 AND l.label = $4))
ORDER BY p.starts_at DESC, p.kind DESC, p.label DESC
LIMIT $5
