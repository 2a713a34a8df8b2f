-- Keys over TLS replace signed requests. A key with a signing secret was of no use without it. To
-- accept such a key without a signature would widen its access, so it is revoked.
WITH revoked AS (
    UPDATE centile_store.api_keys k SET revoked_at = clock_timestamp()
    WHERE k.signing_secret IS NOT NULL AND k.revoked_at IS NULL RETURNING k.id
)
INSERT INTO centile_store.audit_log (actor, action, subject, before, after)
SELECT session_user, 'revoke_key', 'key ' || r.id, '{"revoked": false}', '{"revoked": true}' FROM revoked r;

-- The view, if it exists, reads the column. The files under sql/ replace it after the migrations.
DO $$
BEGIN
    IF to_regclass('centile.api_keys') IS NOT NULL THEN
        CREATE OR REPLACE VIEW centile.api_keys AS
        SELECT id AS key_id, name, role, boards, false AS signed, created_at, expires_at, revoked_at, last_used_at
        FROM centile_store.api_keys;
    END IF;
END
$$;
DROP TABLE centile_store.signed_requests;
ALTER TABLE centile_store.api_keys DROP COLUMN signing_secret;
