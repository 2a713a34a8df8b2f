-- Accepts a label only in its canonical form. No row if it is not a date, not a Monday (weeks), or
-- a date that the zone's calendar leaves out (Pacific/Apia, 2011-12-30).
CREATE OR REPLACE FUNCTION centile.period_named(p_kind text, p_label text, p_zone text)
    RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
AS $$
DECLARE
    v_form text := CASE p_kind WHEN 'month' THEN 'YYYY-MM' ELSE 'YYYY-MM-DD' END;
    v_first timestamp;
BEGIN
    IF p_kind = 'all_time' AND p_label = 'all_time' THEN
        RETURN QUERY VALUES ('all_time', '-infinity'::timestamptz, 'infinity'::timestamptz);
        RETURN;
    ELSIF p_kind NOT IN ('day', 'week', 'month')
        OR p_label !~ '^[0-9]{4}-(0[1-9]|1[0-2])(-[0-9]{2})?$'
        OR length(p_label) <> length(v_form)
        OR left(p_label, 4) = '0000'
    THEN
        RETURN;
    END IF;

    v_first := make_date(left(p_label, 4)::integer, substr(p_label, 6, 2)::integer, 1)::timestamp;
    IF p_kind <> 'month' THEN
        v_first := v_first + (substr(p_label, 9, 2)::integer - 1) * interval '1 day';
    END IF;
    -- By now 2024-02-30 is 2024-03-01, and the Wednesday of a week its Monday.
    label := to_char(date_trunc(p_kind, v_first), v_form);
    IF label <> p_label THEN
        RETURN;
    END IF;
    starts_at := centile.day_start(v_first::date, p_zone);
    ends_at := centile.day_start((v_first + ('1 ' || p_kind)::interval)::date, p_zone);
    IF starts_at < ends_at THEN
        RETURN NEXT;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.period_named(text, text, text) IS
'The day, week, month or all_time of this label with its bounds [starts_at, ends_at); no row if the time zone lacks it. Example: SELECT * FROM centile.period_named(''month'', ''2024-01'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.period_named(text, text, text) TO centile_reader;
