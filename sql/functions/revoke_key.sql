-- Instances notice within five seconds. Repeating the call changes nothing.
CREATE OR REPLACE FUNCTION centile.revoke_key(p_id text, p_actor text DEFAULT session_user) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_key centile_store.api_keys;
BEGIN
    SELECT * INTO v_key FROM centile_store.api_keys WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no key %', quote_literal(p_id) USING ERRCODE = 'CB404', DETAIL = 'key', HINT = 'SELECT key_id FROM centile.api_keys lists them.';
    ELSIF v_key.revoked_at IS NULL THEN
        UPDATE centile_store.api_keys SET revoked_at = clock_timestamp() WHERE id = p_id;
        PERFORM centile_store.note_act(p_actor, 'revoke_key', NULL, '{"revoked": false}', '{"revoked": true}', 'key ' || p_id);
    END IF;
END
$$;

COMMENT ON FUNCTION centile.revoke_key(text, text) IS
'Revokes an API key. Example: SELECT centile.revoke_key(key_id) FROM centile.api_keys WHERE name = ''game server'';';
