-- The score at each tenth percentile of a closed period, as centile_store.percentiles gives it for a ranking.
CREATE OR REPLACE FUNCTION centile_store.archive_percentiles(p_period_id bigint)
RETURNS TABLE (percentile integer, score bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_archive record;
BEGIN
    SELECT * INTO v_archive FROM centile_store.archive_of(p_period_id);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT n, a.score
         FROM generate_series(0, 100, 10) AS n
         JOIN centile_archive.%I a ON a."position" = $1 + 1 - greatest(1, (n * $1 + 99) / 100)
         ORDER BY n', v_archive.archive_name)
    USING v_archive.players;
END
$$;

COMMENT ON FUNCTION centile_store.archive_percentiles(bigint) IS
'Scores at the tenth percentiles of a closed period. Example: SELECT * FROM centile_store.archive_percentiles(2);';
