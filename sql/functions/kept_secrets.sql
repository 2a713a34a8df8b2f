-- Working keys and all webhooks.
CREATE OR REPLACE FUNCTION centile_store.kept_secrets() RETURNS TABLE (kind text, name text, secret bytea, encrypted boolean)
LANGUAGE sql STABLE
AS $$
    SELECT 'key', k.id, k.signing_secret, true FROM centile_store.api_keys k
    WHERE k.signing_secret IS NOT NULL AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
    UNION ALL
    SELECT 'webhook', b.slug, w.secret, w.encrypted FROM centile_store.webhooks w JOIN centile_store.boards b ON b.id = w.board_id
    ORDER BY 1, 2
$$;

COMMENT ON FUNCTION centile_store.kept_secrets() IS
'Secrets that the service must be able to decrypt: signing secrets of keys, by id, and of webhooks, by board. Example: SELECT kind, name, encrypted FROM centile_store.kept_secrets();';
