SELECT id, name, role, boards, created_at, expires_at, revoked_at, last_used_at, request_salt AS "request_salt!"
FROM centile_store.api_keys WHERE request_sha256 = $1
