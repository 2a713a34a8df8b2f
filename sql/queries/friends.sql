-- A page of a player's friends. One row without a friend if there is none, and no row if the
-- player does not exist. The cursor is an internal id, so that pages follow the key of the table.
SELECT f.id AS "id?", f.external_id AS "user_id?", f.name AS "name?", f.avatar AS "avatar?", f.is_mutual AS "is_mutual?"
FROM centile_store.users o
LEFT JOIN LATERAL (
    SELECT e.friend_id AS id, u.external_id, u.name, u.avatar, coalesce(r.is_mutual, false) AS is_mutual
    FROM centile_store.friends e
    CROSS JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.id = e.friend_id AND u.erased_at IS NULL LIMIT 1) u
    LEFT JOIN LATERAL (
        SELECT true AS is_mutual FROM centile_store.friends r WHERE r.user_id = e.friend_id AND r.friend_id = o.id LIMIT 1) r ON true
    WHERE e.user_id = o.id AND e.friend_id > $3 AND (r.is_mutual OR NOT $2)
    ORDER BY e.friend_id
    LIMIT $4) f ON true
WHERE o.external_id = $1
ORDER BY f.id
