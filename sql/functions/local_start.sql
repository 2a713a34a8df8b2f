-- Defines when an hour or a day begins. Hours and days must partition time, whatever a zone's clock
-- does. The clock may show midnight twice (America/Havana) or never (Africa/Cairo). It may fall
-- back from just after midnight into the day before (America/St_Johns until 2011), skip a date
-- (Pacific/Apia, 2011-12-30), or shift by half an hour (Australia/Lord_Howe). So an hour or a day
-- begins at the first instant whose local clock shows that time or a later one, and ends where the
-- next begins. An hour that the clock repeats is one period; an hour that it skips is none.
--
-- AT TIME ZONE alone takes the later of two instants with the same local time. Offsets lie within
-- 16 hours of UTC. No zone of the tz database changes its offset twice within 32 hours (the closest
-- pair is 95 hours apart). So the function tries two offsets: those 16 hours before and after
-- p_clock (as UTC), the earlier one first. If neither leads to an instant that shows p_clock, the
-- clock skips it, and the result is the instant of the skip. All arithmetic is on timestamps
-- without a zone, so the session's TimeZone has no effect. STABLE, because the tz database changes.
CREATE OR REPLACE FUNCTION centile.local_start(p_clock timestamp, p_zone text) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    v_low timestamp := p_clock - interval '16 hours';
    v_high timestamp := p_clock + interval '16 hours';
    v_middle timestamp;
    v_offset_before interval := (v_low AT TIME ZONE 'UTC') AT TIME ZONE p_zone - v_low;
    v_offset_after interval;
    v_start timestamptz := (p_clock - v_offset_before) AT TIME ZONE 'UTC';
BEGIN
    IF v_start AT TIME ZONE p_zone = p_clock THEN
        RETURN v_start;
    END IF;
    v_offset_after := (v_high AT TIME ZONE 'UTC') AT TIME ZONE p_zone - v_high;
    v_start := (p_clock - v_offset_after) AT TIME ZONE 'UTC';
    IF v_start AT TIME ZONE p_zone = p_clock THEN
        RETURN v_start;
    END IF;
    -- The skip is after v_low and not after v_high. Offsets change on whole seconds.
    WHILE v_high - v_low > interval '1 second' LOOP
        v_middle := v_low + date_trunc('second', (v_high - v_low) / 2);
        IF (v_middle AT TIME ZONE 'UTC') AT TIME ZONE p_zone < p_clock THEN
            v_low := v_middle;
        ELSE
            v_high := v_middle;
        END IF;
    END LOOP;
    RETURN v_high AT TIME ZONE 'UTC';
END
$$;

COMMENT ON FUNCTION centile.local_start(timestamp, text) IS
'The first instant whose local clock in the time zone shows this time or a later one. Example: SELECT centile.local_start(''2024-01-15'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.local_start(timestamp, text) TO centile_reader;
