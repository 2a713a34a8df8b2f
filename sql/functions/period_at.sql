-- Days, weeks and months are unions of days as centile.day_start cuts them, so they partition time.
-- An instant in the hour that a zone repeats before midnight belongs to the day that has begun,
-- whatever its local date says. Weeks are ISO weeks, named by their Monday even where that date
-- does not exist. Other kinds and infinite instants give no row. Dates become timestamps without a
-- zone before to_char and date_trunc: on a date both would use the session's TimeZone.
CREATE OR REPLACE FUNCTION centile.period_at(p_kind text, p_at timestamptz, p_zone text)
    RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
AS $$
DECLARE
    v_step interval;
    v_first timestamp;
BEGIN
    IF p_kind = 'all_time' THEN
        RETURN QUERY VALUES ('all_time', '-infinity'::timestamptz, 'infinity'::timestamptz);
        RETURN;
    ELSIF p_kind NOT IN ('day', 'week', 'month') OR NOT isfinite(p_at) THEN
        RETURN;
    END IF;

    v_step := ('1 ' || p_kind)::interval;
    v_first := date_trunc(p_kind, p_at AT TIME ZONE p_zone);
    ends_at := centile.day_start(v_first::date, p_zone);
    -- Usually once; twice where the local date lags behind the day that has begun.
    LOOP
        starts_at := ends_at;
        ends_at := centile.day_start((v_first + v_step)::date, p_zone);
        EXIT WHEN p_at < ends_at;
        v_first := v_first + v_step;
    END LOOP;
    label := to_char(v_first, CASE p_kind WHEN 'month' THEN 'YYYY-MM' ELSE 'YYYY-MM-DD' END);
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION centile.period_at(text, timestamptz, text) IS
'The day, week, month or all_time that holds an instant, with its label and its bounds [starts_at, ends_at). Example: SELECT * FROM centile.period_at(''week'', ''2024-01-17 12:00Z'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.period_at(text, timestamptz, text) TO centile_reader;
