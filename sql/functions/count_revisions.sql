-- The batch that last changed the counts of each lane. Epoch, layout and revisions together identify
-- the counts. On a cluster (sql/cluster), a lane without scores in the ranking has no row, and gets 0.
CREATE OR REPLACE FUNCTION centile_store.count_revisions(p_ranking_id bigint, p_lanes integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN ARRAY(
        SELECT coalesce((SELECT c.revision FROM centile_store.bucket_counts c
                         WHERE c.ranking_id = p_ranking_id AND c.lane = n ORDER BY c.revision DESC LIMIT 1), 0)
        FROM generate_series(0, p_lanes - 1) AS n
        ORDER BY n);
END
$$;

COMMENT ON FUNCTION centile_store.count_revisions(bigint, integer) IS
'Revision of the bucket counts of each lane of a ranking, lane 0 first. Example: SELECT centile_store.count_revisions(1, 2);';
