-- Players of each of the 100 buckets: the counts of all lanes, added.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it. Arrays are
-- added side by side: grouping their elements takes four times as long.
CREATE FUNCTION centile_store.bucket_totals(p_ranking_id bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_totals bigint[];
    v_counts bigint[];
BEGIN
    FOR v_lane IN 0..coalesce((SELECT g.lanes - 1 FROM centile_store.rankings g WHERE g.id = p_ranking_id), -1) LOOP
        v_counts := (SELECT c.counts FROM centile_store.bucket_counts c
                     WHERE c.ranking_id = p_ranking_id AND c.lane = v_lane ORDER BY c.revision DESC LIMIT 1);
        v_totals := CASE WHEN v_totals IS NULL THEN v_counts
                         ELSE ARRAY(SELECT t.a + t.b FROM unnest(v_totals, v_counts) AS t (a, b)) END;
    END LOOP;
    RETURN v_totals;
END
$$;

COMMENT ON FUNCTION centile_store.bucket_totals(bigint) IS
'Players of each bucket of a ranking, lowest first. Example: SELECT centile_store.bucket_totals(1);';
