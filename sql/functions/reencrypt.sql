CREATE OR REPLACE FUNCTION centile_store.reencrypt(p_kind text, p_name text, p_was bytea, p_secret bytea) RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
    WITH key AS (
        UPDATE centile_store.api_keys SET signing_secret = p_secret
        WHERE p_kind = 'key' AND id = p_name AND signing_secret = p_was RETURNING 1
    ), webhook AS (
        UPDATE centile_store.webhooks w SET secret = p_secret, encrypted = true
        FROM centile_store.boards b
        WHERE p_kind = 'webhook' AND b.slug = p_name AND w.board_id = b.id AND w.secret = p_was RETURNING 1
    )
    SELECT EXISTS (SELECT FROM key UNION ALL SELECT FROM webhook)
$$;

COMMENT ON FUNCTION centile_store.reencrypt(text, text, bytea, bytea) IS
'Replaces the stored secret of a key or of a board''s webhook by a newly encrypted one; false if it has changed meanwhile. Example: SELECT centile_store.reencrypt(''webhook'', ''main'', ''\x00'', ''\x01'');';
