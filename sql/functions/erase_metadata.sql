-- Removes the metadata of up to p_limit events, or of all (NULL). SECURITY DEFINER, because the
-- ledger is append-only for the service.
CREATE OR REPLACE FUNCTION centile_store.erase_metadata(p_user_id bigint, p_limit integer, OUT is_done boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_board_id integer;
    v_left     bigint := p_limit;
    v_erased   bigint;
BEGIN
    UPDATE centile_store.quarantine q SET metadata = NULL WHERE q.user_id = p_user_id AND q.metadata IS NOT NULL;
    FOR v_board_id IN SELECT b.id FROM centile_store.boards b ORDER BY b.id LOOP
        WITH found AS MATERIALIZED (
            SELECT t.id, t.occurred_at FROM centile_store.score_transactions t
            WHERE t.board_id = v_board_id AND t.user_id = p_user_id AND t.metadata IS NOT NULL
            LIMIT v_left)
        UPDATE centile_store.score_transactions t SET metadata = NULL
        FROM found f WHERE t.id = f.id AND t.occurred_at = f.occurred_at;
        GET DIAGNOSTICS v_erased = ROW_COUNT;
        v_left := v_left - v_erased;
        EXIT WHEN v_left = 0;
    END LOOP;
    is_done := v_left IS NULL OR v_left > 0;
END
$$;

COMMENT ON FUNCTION centile_store.erase_metadata(bigint, integer) IS
'Removes the metadata of a player''s events, and returns whether none is left. Example: SELECT centile_store.erase_metadata(1, 10000);';
