-- For selectors such as week:previous: the period that holds the last microsecond before the
-- current one. No row for all_time.
CREATE OR REPLACE FUNCTION centile.period_before(p_kind text, p_at timestamptz, p_zone text)
    RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz)
LANGUAGE sql STABLE STRICT PARALLEL SAFE ROWS 1
AS $$
    SELECT earlier.label, earlier.starts_at, earlier.ends_at
    FROM centile.period_at(p_kind, p_at, p_zone) AS held
    CROSS JOIN LATERAL centile.period_at(p_kind, held.starts_at - interval '1 microsecond', p_zone) AS earlier
    WHERE earlier.ends_at <= held.starts_at
$$;

COMMENT ON FUNCTION centile.period_before(text, timestamptz, text) IS
'The period of a calendar kind before the one that holds an instant. Example: SELECT * FROM centile.period_before(''day'', ''2024-01-15 12:00Z'', ''Europe/Berlin'');';
GRANT EXECUTE ON FUNCTION centile.period_before(text, timestamptz, text) TO centile_reader;
