-- Returns no row for all_time and season, which do not follow the calendar.
CREATE OR REPLACE FUNCTION centile.calendar_kind(p_kind text) RETURNS TABLE (label_form text, step interval)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1
AS $$
    SELECT k.label_form, k.step
    FROM (VALUES
        ('hour', 'YYYY-MM-DD"T"HH24', interval '1 hour'),
        ('day', 'YYYY-MM-DD', interval '1 day'),
        ('week', 'YYYY-MM-DD', interval '1 week'),
        ('month', 'YYYY-MM', interval '1 month'),
        ('quarter', 'YYYY-"Q"Q', interval '3 months'),
        ('year', 'YYYY', interval '1 year')) AS k (kind, label_form, step)
    WHERE k.kind = p_kind
$$;

COMMENT ON FUNCTION centile.calendar_kind(text) IS
'The form of the labels of a kind of period, for to_char, and its length on a calendar. Example: SELECT * FROM centile.calendar_kind(''quarter'');';
GRANT EXECUTE ON FUNCTION centile.calendar_kind(text) TO centile_reader;
