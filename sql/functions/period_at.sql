-- Periods of a kind partition time, because each begins where centile.local_start says. If a zone
-- repeats the hour before midnight, the repeated hour belongs to the day that has begun, although
-- the local clock shows the day before. Weeks are ISO weeks, named by their Monday even if the zone
-- skips that date. Returns no row for other kinds, or for an infinite instant except in all_time.
CREATE OR REPLACE FUNCTION centile.period_at(p_kind text, p_at timestamptz, p_zone text)
    RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
AS $$
DECLARE
    v_form  text;
    v_step  interval;
    v_first timestamp;
BEGIN
    IF p_kind = 'all_time' THEN
        RETURN QUERY VALUES ('all_time', '-infinity'::timestamptz, 'infinity'::timestamptz);
        RETURN;
    END IF;
    SELECT k.label_form, k.step INTO v_form, v_step FROM centile.calendar_kind(p_kind) k;
    IF NOT FOUND OR NOT isfinite(p_at) THEN
        RETURN;
    END IF;

    v_first := date_trunc(p_kind, p_at AT TIME ZONE p_zone);
    ends_at := centile.local_start(v_first, p_zone);
    -- Usually once; more often where the local clock lags behind the period that has begun.
    LOOP
        starts_at := ends_at;
        ends_at := centile.local_start(v_first + v_step, p_zone);
        EXIT WHEN p_at < ends_at;
        v_first := v_first + v_step;
    END LOOP;
    label := to_char(v_first, v_form);
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION centile.period_at(text, timestamptz, text) IS
'The hour, day, week, month, quarter, year or all_time that holds an instant, with its label and its bounds [starts_at, ends_at). Example: SELECT * FROM centile.period_at(''week'', ''2024-01-17 12:00Z'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.period_at(text, timestamptz, text) TO centile_reader;
