SELECT key_id AS "id!", name AS "name!", role AS "role!", boards AS "boards!", created_at AS "created_at!", expires_at, revoked_at, last_used_at
FROM centile.api_keys ORDER BY created_at DESC, key_id
