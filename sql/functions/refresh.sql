-- A procedure like centile.close_due: the period and each of its segments have a transaction.
CREATE OR REPLACE PROCEDURE centile.refresh(p_board text, p_period text, p_reason text DEFAULT NULL)
LANGUAGE plpgsql
AS $$
DECLARE
    v_period record;
    v_busy   boolean := false;
BEGIN
    COMMIT;
    SELECT * INTO v_period FROM centile_store.whole_period_named(p_board, p_period);
    IF v_period.state <> 'closed' THEN
        RAISE EXCEPTION '% of board % is not closed', p_period, p_board USING ERRCODE = 'CB409';
    END IF;
    CALL centile_store.refresh_archives(ARRAY[v_period.period_id], p_reason, v_busy);
    IF v_busy THEN
        RAISE EXCEPTION 'another process is closing or refreshing periods; retry later' USING ERRCODE = 'CB001';
    END IF;
END
$$;

COMMENT ON PROCEDURE centile.refresh(text, text, text) IS
'Updates the archive of a closed period from the ledger, and those of its segments that lack a correction. Example: CALL centile.refresh(''main'', ''week:2024-01-15'', ''lost in the outage'');';
GRANT EXECUTE ON PROCEDURE centile.refresh(text, text, text) TO centile_operator;
