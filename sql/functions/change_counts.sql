-- p_batch: the new revision of changed counts; NULL keeps the old one.
CREATE OR REPLACE FUNCTION centile_store.change_counts(p_lane smallint, p_batch bigint, p_rankings bigint[], p_buckets smallint[], p_changes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_written bigint;
BEGIN
    WITH change AS MATERIALIZED (
        -- Finds only the newest version and updates it by ctid, because older versions remain while
        -- another session holds a snapshot. Only the holder of the bucket lock changes these rows.
        SELECT n.*, (SELECT x.ctid FROM centile_store.bucket_counts x
                     WHERE x.ranking_id = n.ranking_id AND x.lane = p_lane ORDER BY x.revision DESC LIMIT 1) AS newest
        FROM (SELECT c.ranking_id, array_agg(c.bucket + 1) AS places, array_agg(c.change) AS changes
              FROM unnest(p_rankings, p_buckets, p_changes) AS c (ranking_id, bucket, change)
              GROUP BY c.ranking_id) n
        -- Keeps all rows, but makes the planner expect few, because it does not know the limit.
        LIMIT cardinality(p_rankings)
    )
    UPDATE centile_store.bucket_counts c
    SET counts = centile_store.add_at(c.counts, n.places, n.changes), revision = coalesce(p_batch, c.revision)
    FROM change n
    WHERE c.ctid = n.newest AND c.ranking_id = n.ranking_id AND c.lane = p_lane;
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF v_written <> (SELECT count(DISTINCT r) FROM unnest(p_rankings) AS r) THEN
        PERFORM centile_store.handle_missing_counts(p_lane, p_batch, p_rankings, p_buckets, p_changes);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.change_counts(smallint, bigint, bigint[], smallint[], integer[]) IS
'Adds to bucket counts of a lane. Example: SELECT centile_store.change_counts(0::smallint, NULL, ''{1,1}'', ''{0,1}'', ''{-1,1}'');';
