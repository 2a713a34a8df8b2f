-- Each server draws ids from a sequence of its own. Stores the highest id on all servers, so that
-- writers that get the structure lock later draw higher ones.
CREATE OR REPLACE FUNCTION centile_store.ledger_end() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_id    bigint;
    v_error text;
BEGIN
    SELECT max(CASE WHEN r.success THEN r.result::bigint END), max(r.result) FILTER (WHERE NOT r.success) INTO v_id, v_error
    FROM run_command_on_workers('SELECT last_value FROM centile_lanes.ids') r;
    IF v_error IS NOT NULL THEN
        RAISE EXCEPTION 'a worker of the cluster failed: %', v_error USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    EXECUTE format('UPDATE centile_lanes.last_id SET id = %s WHERE id < %1$s', v_id);
    RETURN v_id;
END
$$;

COMMENT ON FUNCTION centile_store.ledger_end() IS
'The highest id in the ledger.';
