-- p_rankings, p_buckets, p_changes: see centile_store.change_counts. All lanes of a ranking have counts,
-- except on a cluster, where a worker adds them (sql/cluster).
CREATE OR REPLACE FUNCTION centile_store.add_missing_counts(p_lane smallint, p_rankings bigint[], p_buckets smallint[], p_changes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RAISE EXCEPTION 'counts of lane % are missing', p_lane
        USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
END
$$;

COMMENT ON FUNCTION centile_store.add_missing_counts(smallint, bigint[], smallint[], integer[]) IS
'Raises an error, because a ranking has no counts of a lane. Example: SELECT centile_store.add_missing_counts(0::smallint, ''{1}'', ''{0}'', ''{1}'') WHERE false;';
