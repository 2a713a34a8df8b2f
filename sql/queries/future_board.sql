-- A board that its first score will create. Until then, reads find the ranking of its template, which
-- has no players.
SELECT (to_jsonb(b) || jsonb_build_object('board_id', b.id, 'owner_id', b.id, 'slug', $1::text, 'title', $1::text, 'template', t.name))::text AS "rules!"
FROM centile_store.boards b
JOIN centile_store.templates t ON t.board_id = b.id
WHERE b.id = centile_store.template_of($1)
