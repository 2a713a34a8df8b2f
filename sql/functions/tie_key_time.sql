-- STABLE, like adding an interval, so that PostgreSQL inlines it.
CREATE OR REPLACE FUNCTION centile.tie_key_time(p_tie_key bigint) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN timestamptz '2000-01-01 00:00:00+00'
    + (2251799813685247 - (p_tie_key & 2251799813685247)) * interval '1 microsecond';

COMMENT ON FUNCTION centile.tie_key_time(bigint) IS
'The time packed in a tie key. Example: SELECT centile.tie_key_time(centile.tie_key(timestamptz ''2024-01-15 12:00+00'', 7::smallint));';
GRANT EXECUTE ON FUNCTION centile.tie_key_time(bigint) TO centile_reader;
