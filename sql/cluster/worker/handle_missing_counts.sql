-- On a cluster, centile_store.create_ranking creates no bucket counts, because a worker may be down. Each
-- lane's first batch in the ranking creates them here.
CREATE OR REPLACE FUNCTION centile_store.handle_missing_counts(p_lane smallint, p_batch bigint, p_rankings bigint[], p_buckets smallint[], p_changes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    -- Before the lane's first batch in a ranking, the lane has no bucket rows there. Otherwise, counts were lost.
    IF EXISTS (SELECT FROM unnest(p_rankings, p_changes) AS c (ranking_id, change)
               WHERE NOT EXISTS (SELECT FROM centile_store.bucket_counts x WHERE x.ranking_id = c.ranking_id AND x.lane = p_lane)
               GROUP BY c.ranking_id
               HAVING sum(c.change) <> (SELECT count(*) FROM centile_store.leaderboard_bucket b WHERE b.ranking_id = c.ranking_id AND b.lane = p_lane)) THEN
        RAISE EXCEPTION 'bucket counts of lane % are missing', p_lane
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    INSERT INTO centile_store.bucket_counts (ranking_id, lane, revision, counts)
    SELECT c.ranking_id, p_lane, coalesce(p_batch, 0), centile_store.add_at(array_fill(0, ARRAY[100]), array_agg(c.bucket + 1), array_agg(c.change))
    FROM unnest(p_rankings, p_buckets, p_changes) AS c (ranking_id, bucket, change)
    WHERE NOT EXISTS (SELECT FROM centile_store.bucket_counts x WHERE x.ranking_id = c.ranking_id AND x.lane = p_lane)
    GROUP BY c.ranking_id;
END
$$;

COMMENT ON FUNCTION centile_store.handle_missing_counts(smallint, bigint, bigint[], smallint[], integer[]) IS
'Creates the bucket counts of a lane in rankings that lack them. Raises an error if the lane had entries there before.';
