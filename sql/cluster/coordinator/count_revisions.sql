-- All lanes at once: each server answers one query.
CREATE OR REPLACE FUNCTION centile_store.count_revisions(p_ranking_id bigint, p_lanes integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN ARRAY(
        SELECT coalesce(c.revision, 0)
        FROM generate_series(0, p_lanes - 1) AS n
        LEFT JOIN (SELECT c.lane, max(c.revision) AS revision FROM centile_store.bucket_counts c WHERE c.ranking_id = p_ranking_id GROUP BY c.lane) c ON c.lane = n
        ORDER BY n);
END
$$;

COMMENT ON FUNCTION centile_store.count_revisions(bigint, integer) IS
'Revision of the bucket counts of each lane of a ranking, lane 0 first.';
