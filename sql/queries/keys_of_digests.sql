SELECT id FROM centile_store.api_keys
WHERE secret_sha256 = ANY ($1) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
ORDER BY id
