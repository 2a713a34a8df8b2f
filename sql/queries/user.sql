SELECT user_id AS "user_id!", user_name AS "name!", avatar, metadata AS "metadata!", attributes AS "attributes!", banned_at IS NOT NULL AS "banned!"
FROM centile.users WHERE user_id = $1
