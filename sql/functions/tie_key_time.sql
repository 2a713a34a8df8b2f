-- The way back from tie_key to the time in it.
-- STABLE, as adding an interval is to PostgreSQL; else it could not become part of the query that calls it.
CREATE OR REPLACE FUNCTION centile.tie_key_time(p_tie_key bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN timestamptz '2000-01-01 00:00:00+00'
    + (2251799813685247 - (p_tie_key & 2251799813685247)) * interval '1 microsecond';

COMMENT ON FUNCTION centile.tie_key_time(bigint) IS
'The time packed in a tie key. Example: SELECT centile.tie_key_time(centile.tie_key(timestamptz ''2024-01-15 12:00+00'', 7::smallint));';
GRANT EXECUTE ON FUNCTION centile.tie_key_time(bigint) TO centile_reader;
