-- A board that its first score will create. No row has its id.
SELECT (rules || jsonb_build_object('board_id', -board_id, 'owner_id', board_id, 'slug', $1::text, 'title', $1::text, 'template', name))::text AS "rules!"
FROM centile.templates
WHERE board_id = centile_store.template_of($1)
