-- Opened periods keep their bounds. If an update of the time zone database has changed the calendar
-- since, the next period begins where the last one ended. No period gets a label twice.
CREATE OR REPLACE FUNCTION centile_store.period_holding(p_board_id integer, p_kind text, p_at timestamptz, p_zone text)
RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    v_before  centile_store.periods;
    v_after   centile_store.periods;
    v_found   record;
BEGIN
    SELECT * INTO v_before FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = p_kind AND p.segment = '' AND p.starts_at <= p_at ORDER BY p.starts_at DESC LIMIT 1;
    IF p_at < v_before.ends_at THEN
        RETURN QUERY SELECT v_before.label, v_before.starts_at, v_before.ends_at;
        RETURN;
    END IF;
    SELECT * INTO v_after FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = p_kind AND p.segment = '' AND p.starts_at > p_at ORDER BY p.starts_at LIMIT 1;
    SELECT * INTO v_found FROM centile.period_at(p_kind, p_at, p_zone);
    IF v_found.label = v_before.label THEN
        SELECT * INTO v_found FROM centile.period_at(p_kind, v_found.ends_at, p_zone);
        v_found.starts_at := v_before.ends_at;
    ELSIF v_before.label IS NOT NULL AND EXISTS (
            SELECT FROM centile.period_at(p_kind, v_before.ends_at, p_zone) c
            WHERE c.label = v_before.label AND c.ends_at = v_found.starts_at) THEN
        -- The period before would end later now. The time in between belongs to this one.
        v_found.starts_at := v_before.ends_at;
    ELSIF v_found.label = v_after.label THEN
        SELECT * INTO v_found FROM centile.period_at(p_kind, v_found.starts_at - interval '1 microsecond', p_zone);
        v_found.ends_at := v_after.starts_at;
    END IF;
    RETURN QUERY SELECT v_found.label, greatest(v_found.starts_at, v_before.ends_at), least(v_found.ends_at, v_after.starts_at)
    WHERE v_found.label IS NOT NULL;
END
$$;

COMMENT ON FUNCTION centile_store.period_holding(integer, text, timestamptz, text) IS
'The period of a calendar kind of a board that holds an instant, opened or not. Example: SELECT * FROM centile_store.period_holding(1, ''week'', ''2024-01-17 12:00Z'', ''UTC'');';
