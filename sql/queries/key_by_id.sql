SELECT id, name, role, boards, created_at, expires_at, revoked_at, last_used_at, secret_sha256
FROM centile_store.api_keys WHERE id = $1
