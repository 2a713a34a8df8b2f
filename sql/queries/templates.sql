SELECT name AS "name!", pattern AS "pattern!", boards AS "boards!", max_boards AS "max_boards!",
       (rules || jsonb_build_object('board_id', board_id, 'owner_id', board_id, 'slug', rtrim(pattern, '*')))::text AS "rules!"
FROM centile.templates
WHERE $1::text IS NULL OR name = $1
ORDER BY name
