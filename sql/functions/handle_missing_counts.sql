-- On a single server, each ranking has bucket counts of all lanes from the start, so missing ones are an
-- error. On a cluster, a worker creates them instead (sql/cluster/worker). p_rankings, p_buckets,
-- p_changes: see centile_store.change_counts.
CREATE OR REPLACE FUNCTION centile_store.handle_missing_counts(p_lane smallint, p_batch bigint, p_rankings bigint[], p_buckets smallint[], p_changes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RAISE EXCEPTION 'bucket counts of lane % are missing', p_lane
        USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
END
$$;

COMMENT ON FUNCTION centile_store.handle_missing_counts(smallint, bigint, bigint[], smallint[], integer[]) IS
'Raises an error, because a ranking lacks bucket counts of a lane. Example: SELECT centile_store.handle_missing_counts(0::smallint, 1, ''{1}'', ''{0}'', ''{1}'') WHERE false;';
