-- What orders equal scores, in one bigint: the tiebreak in the upper 13 bits, below it 51 bits of
-- (2^51 - 1 - microseconds since 2000), so that an earlier time is larger.
-- From an interval: the epoch of a time is not immutable to PostgreSQL, and this would be called where it can be part of the query
-- itself, at a sixth of the cost.
CREATE OR REPLACE FUNCTION centile.tie_key(p_at timestamptz, p_tiebreak smallint DEFAULT 0) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (coalesce(p_tiebreak, 0::smallint)::bigint << 51)
    + 2251799813685247 - (extract(epoch FROM p_at - timestamptz '2000-01-01 00:00:00+00') * 1000000)::bigint;

COMMENT ON FUNCTION centile.tie_key(timestamptz, smallint) IS
'Tiebreak and time packed so that a larger tiebreak, then an earlier time, is larger. Example: SELECT centile.tie_key(timestamptz ''2024-01-15 12:00+00'', 7::smallint);';
GRANT EXECUTE ON FUNCTION centile.tie_key(timestamptz, smallint) TO centile_reader;
