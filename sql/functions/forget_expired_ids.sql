-- Each step is bounded, so that it never locks many rows. A submitted event that an instance has
-- written and not yet removed from the inbox must not lose its id.
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
    ), failed AS (
        DELETE FROM centile_store.inbox_failures f
        WHERE f.ctid = ANY (ARRAY(SELECT d.ctid FROM centile_store.inbox_failures d
                                  WHERE d.decided_at < now() - interval '7 days' LIMIT greatest(p_limit, 0)))
        RETURNING 1
    )
    SELECT CASE WHEN EXISTS (SELECT FROM centile_store.inbox i WHERE i.submitted_at < now() - interval '6 days') THEN 0 ELSE centile_store.forget_event_ids(p_limit) END
        + (SELECT count(*) FROM erased) + (SELECT count(*) FROM settled) + (SELECT count(*) FROM failed)
$$;

COMMENT ON FUNCTION centile_store.forget_expired_ids(integer) IS
'Deletes up to p_limit each of expired ids of callers, completed erasures, idempotency keys of API keys and failed submissions, and returns their number. Example: SELECT centile_store.forget_expired_ids();';
