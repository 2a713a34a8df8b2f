-- Defines when a day begins. Days must partition time, whatever a zone's clock does. It may show
-- midnight twice (America/Havana) or never (Africa/Cairo). It may fall back from just after
-- midnight into the day before (America/St_Johns until 2011), or skip a date (Pacific/Apia,
-- 2011-12-30). So a day begins at the first instant whose local date is that date or a later one,
-- and ends where the next day begins.
--
-- AT TIME ZONE alone takes the later of two midnights. Offsets lie within 16 hours of UTC. No zone
-- of the tz database changes its offset twice within 32 hours (the closest pair is 95 hours apart).
-- So one of the offsets at the two ends leads to an instant that shows midnight, the earlier one
-- first. Otherwise the clock skips midnight, and the result is the instant of the skip. All
-- arithmetic is on UTC and on local clocks without a zone, whatever the session's TimeZone. STABLE,
-- because the tz database changes.
CREATE OR REPLACE FUNCTION centile.day_start(p_date date, p_zone text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    v_midnight timestamp := p_date;
    v_low timestamp := v_midnight - interval '16 hours';
    v_high timestamp := v_midnight + interval '16 hours';
    v_middle timestamp;
    v_offset_before interval := (v_low AT TIME ZONE 'UTC') AT TIME ZONE p_zone - v_low;
    v_offset_after interval;
    v_start timestamptz := (v_midnight - v_offset_before) AT TIME ZONE 'UTC';
BEGIN
    IF v_start AT TIME ZONE p_zone = v_midnight THEN
        RETURN v_start;
    END IF;
    v_offset_after := (v_high AT TIME ZONE 'UTC') AT TIME ZONE p_zone - v_high;
    v_start := (v_midnight - v_offset_after) AT TIME ZONE 'UTC';
    IF v_start AT TIME ZONE p_zone = v_midnight THEN
        RETURN v_start;
    END IF;
    -- The skip is after v_low and not after v_high. Offsets change on whole seconds.
    WHILE v_high - v_low > interval '1 second' LOOP
        v_middle := v_low + date_trunc('second', (v_high - v_low) / 2);
        IF (v_middle AT TIME ZONE 'UTC') AT TIME ZONE p_zone < v_midnight THEN
            v_low := v_middle;
        ELSE
            v_high := v_middle;
        END IF;
    END LOOP;
    RETURN v_high AT TIME ZONE 'UTC';
END
$$;

COMMENT ON FUNCTION centile.day_start(date, text) IS
'The first instant whose local date in the time zone is the date or a later one. Example: SELECT centile.day_start(''2024-01-15'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.day_start(date, text) TO centile_reader;
