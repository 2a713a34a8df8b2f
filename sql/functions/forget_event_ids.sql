-- A part of centile.forget_expired_ids that each server of a cluster does for its own lanes.
CREATE OR REPLACE FUNCTION centile_store.forget_event_ids(p_limit integer) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH expired AS (
        SELECT board_id, user_id, external_id FROM centile_store.transaction_ids
        WHERE expires_at < now() ORDER BY board_id, user_id, external_id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM centile_store.transaction_ids t USING expired e
        WHERE t.board_id = e.board_id AND t.user_id = e.user_id AND t.external_id = e.external_id RETURNING 1
    )
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION centile_store.forget_event_ids(integer) IS
'Deletes expired ids of events, up to a limit, and returns their number. Example: SELECT centile_store.forget_event_ids(10) >= 0 AS is_done;';
