-- A light check of one bucket, in one snapshot. No row if all is well, if the bucket counts more
-- than p_most players, or if the ranking is no longer its period's.
CREATE OR REPLACE FUNCTION centile_store.count_differences(p_ranking_id bigint, p_bucket smallint, p_most bigint DEFAULT NULL, OUT expected bigint, OUT found bigint)
RETURNS SETOF record
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_players bigint;
    v_rows    bigint;
BEGIN
    SELECT u.players INTO v_players
    FROM centile_store.current_rankings c
    JOIN centile_store.rankings g ON g.id = c.id AND g.has_bucket_rows
    CROSS JOIN LATERAL unnest(g.buckets, centile_store.bucket_totals(g.id)) AS u (bucket, players)
    WHERE g.id = p_ranking_id AND u.bucket = p_bucket;
    IF FOUND AND (p_most IS NULL OR coalesce(v_players, 0) <= p_most) THEN
        EXECUTE format('SELECT count(*) FROM centile_store.%I WHERE ranking_id = $1', centile_store.bucket_table(p_bucket))
        INTO v_rows USING p_ranking_id;
        -- RETURN QUERY, because the name of column found means plpgsql's variable FOUND. The sum is
        -- NULL if a lane lacks counts.
        RETURN QUERY SELECT v_rows, coalesce(v_players, 0) WHERE v_rows <> coalesce(v_players, 0);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.count_differences(bigint, smallint, bigint) IS
'Difference between the count of a bucket and its rows. Example: SELECT * FROM centile_store.count_differences(1, 50::smallint);';
