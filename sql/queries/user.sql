SELECT user_id AS "user_id!", user_name AS "name!", avatar, metadata::text AS "metadata!", attributes::text AS "attributes!", reading, banned_at IS NOT NULL AS "banned!"
FROM centile.users WHERE user_id = $1
