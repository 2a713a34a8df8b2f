-- In the query of archives, which exist longer than any version of this function: keep its arguments
-- and result. REFRESH MATERIALIZED VIEW takes its snapshot before it waits for the view: behind
-- centile_store.refresh_archive, it would restore the rows of the earlier revision. A volatile function
-- reads what has been committed since, except in a transaction that reads one snapshot.
CREATE OR REPLACE FUNCTION centile_store.check_refresh(p_period_id bigint, p_batches bigint[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED
AS $$
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'REFRESH of an archive needs the isolation level read committed, not %', current_setting('transaction_isolation') USING ERRCODE = 'CB409';
    ELSIF p_batches <> (SELECT c.batches FROM centile_store.cut_offs c WHERE c.period_id = p_period_id) THEN
        RAISE EXCEPTION 'the archive was refreshed while this REFRESH waited' USING ERRCODE = 'CB409', HINT = 'The archive has its new rows.';
    END IF;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.check_refresh(bigint, bigint[]) IS
'Raises an error if the batches that an archive is computed from are no longer those of its cut-off. Example: SELECT centile_store.check_refresh(c.period_id, c.batches) FROM centile_store.cut_offs c;';
