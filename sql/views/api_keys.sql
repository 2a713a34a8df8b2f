CREATE OR REPLACE VIEW centile.api_keys AS
SELECT id AS key_id, name, role, boards, created_at, expires_at, revoked_at, last_used_at
FROM centile_store.api_keys;

COMMENT ON VIEW centile.api_keys IS 'API keys without their secrets: role, boards, and when each was last used. Example: SELECT name, role, boards, expires_at, revoked_at, last_used_at FROM centile.api_keys ORDER BY created_at;';
GRANT SELECT ON centile.api_keys TO centile_reader;
