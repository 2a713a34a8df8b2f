-- Accepts a label only in its canonical form. Returns no row if the label is not a date (for a
-- week, a Monday), or if the zone skips the period: the day 2011-12-30 in Pacific/Apia, or an hour
-- that the clock skips.
CREATE OR REPLACE FUNCTION centile.period_named(p_kind text, p_label text, p_zone text)
    RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE ROWS 1
AS $$
DECLARE
    v_form  text;
    v_step  interval;
    v_part  text[] := regexp_match(p_label, '^([0-9]{4})(?:-(?:Q([1-4])|(0[1-9]|1[0-2])(?:-([0-9]{2})(?:T([0-9]{2}))?)?))?$');
    v_first timestamp;
BEGIN
    IF p_kind = 'all_time' AND p_label = 'all_time' THEN
        RETURN QUERY VALUES ('all_time', '-infinity'::timestamptz, 'infinity'::timestamptz);
        RETURN;
    END IF;
    SELECT k.label_form, k.step INTO v_form, v_step FROM centile.calendar_kind(p_kind) k;
    IF NOT FOUND OR v_part IS NULL OR v_part[1] = '0000' THEN
        RETURN;
    END IF;

    v_first := make_date(v_part[1]::integer, coalesce(3 * v_part[2]::integer - 2, v_part[3]::integer, 1), 1)
        + make_interval(days => coalesce(v_part[4]::integer, 1) - 1, hours => coalesce(v_part[5]::integer, 0));
    -- By now 2024-02-30 is 2024-03-01, and the Wednesday of a week its Monday.
    label := to_char(date_trunc(p_kind, v_first), v_form);
    IF label <> p_label THEN
        RETURN;
    END IF;
    starts_at := centile.local_start(v_first, p_zone);
    ends_at := centile.local_start(v_first + v_step, p_zone);
    IF starts_at < ends_at THEN
        RETURN NEXT;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.period_named(text, text, text) IS
'The hour, day, week, month, quarter, year or all_time of this label with its bounds [starts_at, ends_at); no row if the time zone lacks it. Example: SELECT * FROM centile.period_named(''month'', ''2024-01'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.period_named(text, text, text) TO centile_reader;
