-- Of a board or, for a board of a template, of the template. By start; snapshots and windows, which overlap, by their end. Omits what cannot be read: a snapshot
-- that is being taken, and a window that is being filled, is next, or was released.
SELECT p.kind AS "kind!", p.label AS "label!", nullif(p.starts_at, '-infinity') AS starts_at, nullif(p.ends_at, 'infinity') AS ends_at, CASE p.state WHEN 'closing' THEN 'due' ELSE p.state END AS "state!"
FROM (SELECT p.*, CASE WHEN kind IN ('snapshot', 'rolling') THEN p.ends_at ELSE p.starts_at END AS place FROM centile.periods p
      WHERE p.board = (SELECT b.slug FROM centile_store.boards b WHERE b.id = $1) AND p.segment = '' AND (p.kind <> 'snapshot' OR p.state = 'closed')
        AND (p.kind <> 'rolling' OR p.archive IS NOT NULL OR (p.ranking_id IS NOT NULL AND p.state <> 'upcoming'))) p
WHERE ($2::text IS NULL OR p.kind = $2)
  AND ($3::text IS NULL OR (p.place, p.kind, p.label) < (
      SELECT CASE WHEN l.kind IN ('snapshot', 'rolling') THEN l.ends_at ELSE l.starts_at END, l.kind, l.label
      FROM centile.periods l WHERE l.board = p.board AND l.kind = $3 AND l.label = $4 AND l.segment = ''))
ORDER BY p.place DESC, p.kind DESC, p.label DESC
LIMIT $5
