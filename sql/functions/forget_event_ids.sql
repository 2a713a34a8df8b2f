-- A part of centile_store.forget_expired_ids that each server of a cluster does for its own lanes. Reads
-- the ids that have expired first, so that a call costs the same however many have expired. The
-- planner cannot know the limit, and would otherwise sort all of them.
CREATE OR REPLACE FUNCTION centile_store.forget_event_ids(p_limit integer) RETURNS bigint
LANGUAGE sql VOLATILE
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $$
    WITH gone AS (
        DELETE FROM centile_store.transaction_ids t
        WHERE t.ctid = ANY (ARRAY(SELECT e.ctid FROM centile_store.transaction_ids e
                                  WHERE e.expires_at < now() ORDER BY e.expires_at LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED))
        RETURNING 1
    )
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION centile_store.forget_event_ids(integer) IS
'Deletes expired ids of events, up to a limit, and returns their number. Example: SELECT centile_store.forget_event_ids(10) >= 0 AS is_done;';
