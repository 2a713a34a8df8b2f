-- Waiting events stay, and the audit log keeps the decisions for good. A row stays for at least eight
-- days: a repeated event needs it until its id is deleted, soon after seven days.
CREATE OR REPLACE FUNCTION centile_store.forget_decided_events(p_limit integer DEFAULT 10000, p_keep interval DEFAULT interval '90 days') RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH old AS (
        SELECT id FROM centile_store.quarantine
        WHERE decided_at < now() - greatest(p_keep, interval '8 days') ORDER BY decided_at LIMIT greatest(p_limit, 0) FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM centile_store.quarantine q USING old o WHERE q.id = o.id RETURNING 1
    )
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION centile_store.forget_decided_events(integer, interval) IS
'Deletes up to p_limit events of the quarantine that were decided longer ago than p_keep, at least 8 days, and returns their number. Example: SELECT centile_store.forget_decided_events();';
