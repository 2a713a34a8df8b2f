-- Kept for longer than a signature is valid (300 s either way), even if the clocks of service and
-- database differ by half an hour.
CREATE OR REPLACE FUNCTION centile_store.note_signature(p_key_id text, p_signature bytea) RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
    WITH noted AS (
        INSERT INTO centile_store.signed_requests (key_id, signature, expires_at)
        VALUES (p_key_id, p_signature, clock_timestamp() + interval '1 hour')
        ON CONFLICT ON CONSTRAINT signed_requests_pkey DO NOTHING RETURNING 1
    )
    SELECT EXISTS (SELECT FROM noted)
$$;

COMMENT ON FUNCTION centile_store.note_signature(text, bytea) IS
'Records the signature of a request that changes something, and returns whether it is new. Example: SELECT centile_store.note_signature(key_id, sha256(''a request'')) FROM centile.api_keys WHERE name = ''game server'';';
