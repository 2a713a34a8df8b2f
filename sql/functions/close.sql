CREATE OR REPLACE PROCEDURE centile.close(p_board text, p_period text)
LANGUAGE plpgsql
AS $$
DECLARE
    v_period record;
    v_busy   boolean := false;
BEGIN
    COMMIT;
    SELECT * INTO v_period FROM centile_store.whole_period_named(p_board, p_period);
    IF v_period.state IN ('open', 'upcoming') THEN
        RAISE EXCEPTION '% of board % is not over yet: it ends %', p_period, p_board, CASE v_period.ends_at WHEN 'infinity' THEN 'never' ELSE 'at ' || v_period.ends_at END USING ERRCODE = 'CB409';
    ELSIF v_period.period_id IS NULL THEN
        RAISE NOTICE '% of board % has no scores', p_period, p_board;
        RETURN;
    END IF;
    CALL centile_store.close_periods(v_period.period_id, v_busy);
    IF v_busy THEN
        RAISE EXCEPTION 'another process is closing or refreshing periods; retry later' USING ERRCODE = 'CB001';
    END IF;
END
$$;

COMMENT ON PROCEDURE centile.close(text, text) IS
'Closes a period that is over, with its segments; nothing if it is closed. Example: CALL centile.close(''arena'', ''week:previous'');';
GRANT EXECUTE ON PROCEDURE centile.close(text, text) TO centile_operator;
