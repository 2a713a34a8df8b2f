SELECT slug AS "slug!", (to_jsonb(b) || jsonb_build_object('structure_revision', (SELECT o.structure_revision FROM centile_store.boards o WHERE o.id = b.owner_id), 'combination', (
           SELECT to_jsonb(c) || jsonb_build_object('last_failure', CASE WHEN c.failed_at IS NOT NULL THEN jsonb_build_object('at', c.failed_at, 'detail', c.failure) END)
           FROM centile.combinations c WHERE c.board_id = b.board_id)))::text AS "rules!"
FROM centile.boards b
WHERE slug = ANY (CASE WHEN $1::text IS NULL THEN ARRAY(SELECT centile_store.listed_boards($2, $3, $4, $5, $6, $7)) ELSE ARRAY[$1] END)
ORDER BY slug
