-- 10 s after the first attempt, twice as long after each further one, at most an hour. p_random,
-- from 0 to 1, adds up to a quarter, so that messages that failed together do not return together.
CREATE OR REPLACE FUNCTION centile_store.retry_delay(p_attempts integer, p_random double precision) RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT least(10 * 2 ^ least(greatest(p_attempts, 1) - 1, 20), 2880) * (1 + 0.25 * p_random) * interval '1 second'
$$;

COMMENT ON FUNCTION centile_store.retry_delay(integer, double precision) IS
'The time from a failed attempt to the next one. Example: SELECT n, centile_store.retry_delay(n, 0) AS at_least, centile_store.retry_delay(n, 1) AS at_most FROM generate_series(1, 10) AS n;';
