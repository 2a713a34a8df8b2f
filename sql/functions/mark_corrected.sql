-- In the order of ids, so that concurrent acts cannot deadlock.
CREATE OR REPLACE FUNCTION centile_store.mark_corrected(p_period_ids bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM FROM centile_store.periods p WHERE p.id = ANY (p_period_ids) ORDER BY p.id FOR UPDATE;
    UPDATE centile_store.periods p SET corrected_at = clock_timestamp() WHERE p.id = ANY (p_period_ids);
END
$$;

COMMENT ON FUNCTION centile_store.mark_corrected(bigint[]) IS
'Marks closed periods whose archives lack a correction until their next refresh. Example: SELECT centile_store.mark_corrected(''{2}'');';
