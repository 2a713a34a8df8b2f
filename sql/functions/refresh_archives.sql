-- If an archive cannot be refreshed, the others are refreshed nevertheless. Ends early, without an
-- error, while another process closes or refreshes: is_busy, unless some are refreshed already.
CREATE OR REPLACE PROCEDURE centile_store.refresh_archives(p_period_ids bigint[], p_reason text, INOUT is_busy boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
DECLARE
    v_left   bigint[] := p_period_ids;
    v_step   record;
    v_failed text[] := '{}';
    v_none   boolean := true;
BEGIN
    WHILE v_left <> '{}' AND NOT is_busy LOOP
        SELECT * INTO v_step FROM centile_store.refresh_step(v_left[1], p_reason);
        COMMIT;
        is_busy := v_step.is_busy;
        IF v_step.is_refreshed OR is_busy THEN
            RAISE NOTICE '%', v_step.result;
        ELSE
            RAISE WARNING '%', v_step.result;
            v_failed := v_failed || v_step.result;
        END IF;
        v_none := v_none AND NOT v_step.is_refreshed;
        v_left := v_step.next || v_left[2:];
    END LOOP;
    is_busy := is_busy AND v_none;
    IF v_failed <> '{}' THEN
        RAISE EXCEPTION '%', array_to_string(v_failed, '; ') USING ERRCODE = 'CB409';
    END IF;
END
$$;

COMMENT ON PROCEDURE centile_store.refresh_archives(bigint[], text, boolean) IS
'Refreshes archives and then their outdated segments, each in a transaction. Example: CALL centile_store.refresh_archives(''{}'', NULL);';
GRANT EXECUTE ON PROCEDURE centile_store.refresh_archives(bigint[], text, boolean) TO centile_operator;
