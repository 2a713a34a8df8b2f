-- A ranking begins without counts (centile_store.create_ranking), because a worker may be down.
CREATE OR REPLACE FUNCTION centile_store.add_missing_counts(p_lane smallint, p_rankings bigint[], p_buckets smallint[], p_changes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
    SELECT c.ranking_id, p_lane, centile_store.add_at(array_fill(0, ARRAY[100]), array_agg(c.bucket + 1), array_agg(c.change))
    FROM unnest(p_rankings, p_buckets, p_changes) AS c (ranking_id, bucket, change)
    WHERE NOT EXISTS (SELECT FROM centile_store.bucket_counts x WHERE x.ranking_id = c.ranking_id AND x.lane = p_lane)
    GROUP BY c.ranking_id;
END
$$;

COMMENT ON FUNCTION centile_store.add_missing_counts(smallint, bigint[], smallint[], integer[]) IS
'Creates the counts of a lane in rankings that have none.';
