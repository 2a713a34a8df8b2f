-- The upper 13 bits are the tiebreak, the lower 51 bits 2^51 - 1 - microseconds since 2000.
-- Subtracts times, because in PostgreSQL the epoch of a time is not immutable, which would prevent
-- inlining.
CREATE OR REPLACE FUNCTION centile.tie_key(p_at timestamptz, p_tiebreak smallint DEFAULT 0) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (coalesce(p_tiebreak, 0::smallint)::bigint << 51)
    + 2251799813685247 - (extract(epoch FROM p_at - timestamptz '2000-01-01 00:00:00+00') * 1000000)::bigint;

COMMENT ON FUNCTION centile.tie_key(timestamptz, smallint) IS
'Tiebreak and time packed so that a larger tiebreak, then an earlier time, is larger. Example: SELECT centile.tie_key(timestamptz ''2024-01-15 12:00+00'', 7::smallint);';
GRANT EXECUTE ON FUNCTION centile.tie_key(timestamptz, smallint) TO centile_reader;
