-- Each step is bounded, so that it never locks many rows.
CREATE OR REPLACE FUNCTION centile.forget_expired_ids(p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH old AS (
        SELECT key_id, signature FROM centile_store.signed_requests
        WHERE expires_at < now() ORDER BY expires_at LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED
    ), forgotten AS (
        DELETE FROM centile_store.signed_requests s USING old o
        WHERE s.key_id = o.key_id AND s.signature = o.signature RETURNING 1
    ), done AS (
        SELECT user_id FROM centile_store.erasures
        WHERE done_at < now() - interval '7 days' ORDER BY user_id LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED
    ), erased AS (
        DELETE FROM centile_store.erasures e USING done d WHERE e.user_id = d.user_id RETURNING 1
    ), requested AS (
        SELECT id FROM centile_store.api_keys
        WHERE request_sha256 IS NOT NULL AND created_at < now() - interval '7 days' ORDER BY id LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED
    ), settled AS (
        UPDATE centile_store.api_keys k SET request_sha256 = NULL, request_salt = NULL FROM requested r WHERE k.id = r.id RETURNING 1
    )
    SELECT centile_store.forget_event_ids(p_limit) + (SELECT count(*) FROM forgotten) + (SELECT count(*) FROM erased)
        + (SELECT count(*) FROM settled)
$$;

COMMENT ON FUNCTION centile.forget_expired_ids(integer) IS
'Deletes up to p_limit each of expired ids of callers, expired signatures of requests, completed erasures and idempotency keys of API keys, and returns their number. Example: SELECT centile.forget_expired_ids();';
