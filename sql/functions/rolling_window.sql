-- The window ends with the day or hour that holds p_at. Days are those of the time zone; 24h are 24
-- hours even if the zone repeats or skips one. No row for other lengths.
CREATE OR REPLACE FUNCTION centile.rolling_window(p_length text, p_at timestamptz, p_zone text)
    RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz, current_from timestamptz)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
AS $$
DECLARE
    v_days integer := substring(p_length FROM '^([1-9][0-9]{0,2})d$')::integer;
    v_last record;
BEGIN
    IF p_length = '24h' THEN
        SELECT * INTO v_last FROM centile.period_at('hour', p_at, p_zone);
        starts_at := v_last.ends_at - interval '24 hours';
    ELSIF v_days BETWEEN 2 AND 366 THEN
        SELECT * INTO v_last FROM centile.period_at('day', p_at, p_zone);
        starts_at := centile.local_start((v_last.label::date - v_days + 1)::timestamp, p_zone);
    ELSE
        RETURN;
    END IF;
    IF v_last.label IS NOT NULL THEN
        label := p_length || '-' || v_last.label;
        ends_at := v_last.ends_at;
        current_from := v_last.starts_at;
        RETURN NEXT;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.rolling_window(text, timestamptz, text) IS
'The rolling window of a length (2d to 366d, or 24h) that is current at an instant: its bounds [starts_at, ends_at), and the instant from which it is current. Example: SELECT * FROM centile.rolling_window(''7d'', ''2024-01-17 12:00Z'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.rolling_window(text, timestamptz, text) TO centile_reader;
