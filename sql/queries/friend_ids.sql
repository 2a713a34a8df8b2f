SELECT u.id AS "id!", centile_store.friend_ids(u.id, $2) AS "friend_ids!" FROM centile_store.users u WHERE u.external_id = $1
