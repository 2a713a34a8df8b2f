-- For the procedures of operators. The state is that of centile.resolve_period; period_id is NULL
-- while the period has no scores.
CREATE OR REPLACE FUNCTION centile_store.whole_period_named(p_board text, p_period text, OUT period_id bigint, OUT state text, OUT ends_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Raises the errors for periods that do not exist, are being prepared or have lost their archive.
    PERFORM centile_store.source_named(p_board, p_period);
    IF p_period IS NULL OR p_period LIKE '%@%' THEN
        RAISE EXCEPTION 'name a whole period: its segments are closed and refreshed together with it' USING ERRCODE = 'CB409';
    END IF;
    SELECT r.period_id, r.state, r.ends_at INTO period_id, state, ends_at
    FROM centile.resolve_period((centile_store.board_named(p_board)).id, p_period) r;
END
$$;

COMMENT ON FUNCTION centile_store.whole_period_named(text, text) IS
'Id, state and end of a period that an operator names. Example: SELECT state FROM centile_store.whole_period_named(''main'', ''week:2024-01-15'');';
GRANT EXECUTE ON FUNCTION centile_store.whole_period_named(text, text) TO centile_operator;
