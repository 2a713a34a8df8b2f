-- Each step is bounded, so that it never locks many rows.
CREATE OR REPLACE FUNCTION centile_store.forget_expired_ids(p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH erased AS (
        DELETE FROM centile_store.erasures e
        WHERE e.ctid = ANY (ARRAY(SELECT d.ctid FROM centile_store.erasures d
                                  WHERE d.done_at < now() - interval '7 days' LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED))
        RETURNING 1
    ), settled AS (
        UPDATE centile_store.api_keys k SET request_sha256 = NULL, request_salt = NULL
        WHERE k.ctid = ANY (ARRAY(SELECT r.ctid FROM centile_store.api_keys r
                                  WHERE r.request_sha256 IS NOT NULL AND r.created_at < now() - interval '7 days'
                                  LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT centile_store.forget_event_ids(p_limit) + (SELECT count(*) FROM erased) + (SELECT count(*) FROM settled)
$$;

COMMENT ON FUNCTION centile_store.forget_expired_ids(integer) IS
'Deletes up to p_limit each of expired ids of callers, completed erasures and idempotency keys of API keys, and returns their number. Example: SELECT centile_store.forget_expired_ids();';
