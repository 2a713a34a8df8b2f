-- Closes all due periods, or one whole period and its segments. If one of them cannot be closed, the
-- others are closed nevertheless. Periods that end meanwhile are left to the next call. Ends early,
-- without an error, while another process closes or refreshes: is_busy.
CREATE OR REPLACE PROCEDURE centile_store.close_periods(p_whole_id bigint, INOUT is_busy boolean DEFAULT false)
LANGUAGE plpgsql
AS $$
DECLARE
    v_began  timestamptz := clock_timestamp();
    v_tried  bigint[] := '{}';
    v_failed text[] := '{}';
    v_due    record;
    v_step   record;
    v_cut_off_at timestamptz;
BEGIN
    WHILE centile_store.place_waiting() > 0 LOOP COMMIT; END LOOP;
    <<lists>>
    LOOP
        -- A list, because each look reads all open periods. Looks again, because closing a period makes
        -- its segments due.
        <<next_period>>
        FOR v_due IN
            SELECT d.period_id, d.import_source, format('%s of board %s', d.period, d.board) AS name FROM centile_store.due_periods(p_whole_id) d
            WHERE d.period_id <> ALL (v_tried) AND d.ends_at <= v_began LIMIT 20
        LOOP
            v_tried := v_tried || v_due.period_id;
            IF v_due.import_source IS NOT NULL THEN
                RAISE NOTICE '% waits for the import of %', v_due.name, v_due.import_source;
                CONTINUE;
            END IF;
            v_cut_off_at := NULL;
            LOOP
                BEGIN
                    SELECT * INTO v_step FROM centile_store.close_step(v_due.period_id, v_cut_off_at);
                EXCEPTION WHEN OTHERS THEN
                    RAISE WARNING '% could not be closed: % (%)', v_due.name, SQLERRM, SQLSTATE;
                    v_failed := v_failed || format('%s: %s (%s)', v_due.name, SQLERRM, SQLSTATE);
                    CONTINUE next_period;
                END;
                COMMIT;
                v_cut_off_at := v_step.cut_off_at;
                EXIT WHEN v_step.result IS NOT NULL;
            END LOOP;
            RAISE NOTICE '% %', v_due.name, v_step.result;
            WHILE centile_store.place_waiting() > 0 LOOP COMMIT; END LOOP;
            is_busy := v_step.is_busy;
            EXIT lists WHEN is_busy;
        END LOOP;
        EXIT WHEN NOT FOUND;
        COMMIT;
    END LOOP;
    IF v_failed <> '{}' THEN
        RAISE EXCEPTION 'could not be closed: %', array_to_string(v_failed, '; ') USING ERRCODE = 'CB409';
    END IF;
END
$$;

COMMENT ON PROCEDURE centile_store.close_periods(bigint, boolean) IS
'Closes due periods, each in three transactions. Example: CALL centile_store.close_periods(2);';
GRANT EXECUTE ON PROCEDURE centile_store.close_periods(bigint, boolean) TO centile_operator;
