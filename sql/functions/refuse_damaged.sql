CREATE OR REPLACE FUNCTION centile_store.refuse_damaged(p_ranking_id bigint) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF (SELECT g.damaged_at IS NOT NULL FROM centile_store.rankings g WHERE g.id = p_ranking_id) THEN
        RAISE EXCEPTION 'the bucket rows of ranking % are damaged', p_ranking_id
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.refuse_damaged(bigint) IS
'Raises an error if a ranking is marked as damaged. Example: SELECT centile_store.refuse_damaged(1);';
