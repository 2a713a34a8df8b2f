-- Refreshes an archive for an operator. Holds the closing lock until the caller commits, unless
-- another process does (is_busy). The result is a sentence for the operator, and next the segments to
-- be refreshed after it.
CREATE OR REPLACE FUNCTION centile_store.refresh_step(p_period_id bigint, p_reason text, OUT is_busy boolean, OUT is_refreshed boolean, OUT result text, OUT next bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_name text := (SELECT format('%s of board %s', centile_store.period_name(p.kind, p.label, p.segment), b.slug)
                    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE p.id = p_period_id);
    v_hint text;
BEGIN
    -- A caller in a transaction block must not hold locks while it is idle.
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    is_refreshed := false;
    is_busy := NOT pg_try_advisory_xact_lock(1128615508, -1);
    IF is_busy THEN
        result := 'another process is closing or refreshing periods';
        RETURN;
    END IF;
    result := format('%s is refreshed: revision %s', v_name, centile_store.refresh_archive(p_period_id, session_user, p_reason));
    next := ARRAY(SELECT s FROM centile_store.outdated_segments(p_period_id) AS s);
    is_refreshed := true;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
    result := format('%s could not be refreshed: %s (%s)%s', coalesce(v_name, 'period ' || p_period_id), SQLERRM, SQLSTATE, ' ' || nullif(v_hint, ''));
END
$$;

COMMENT ON FUNCTION centile_store.refresh_step(bigint, text) IS
'Refreshes an archive for an operator. Example: SELECT s.result FROM centile.periods p CROSS JOIN LATERAL centile_store.refresh_step(p.period_id, ''lost in the outage'') s WHERE p.archive = ''centile_archive.main_week_2024_01_15'';';
GRANT EXECUTE ON FUNCTION centile_store.refresh_step(bigint, text) TO centile_operator;
