-- Removes the metadata of a player's next p_limit events, or of all (NULL). The caller has locked
-- the erasure. Later batches write no metadata of this player. SECURITY DEFINER, because the ledger
-- is append-only for the service.
CREATE OR REPLACE FUNCTION centile_store.erase_metadata(p_user_id bigint, p_limit integer, OUT is_done boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_board_id integer;
    v_at       timestamptz;
    v_id       bigint;
    v_left     bigint := p_limit;
    v_seen     bigint;
BEGIN
    SELECT e.next_board_id, e.last_event_at, e.last_ledger_id INTO v_board_id, v_at, v_id
    FROM centile_store.erasures e WHERE e.user_id = p_user_id;
    IF v_board_id = 0 THEN
        UPDATE centile_store.quarantine q SET metadata = NULL WHERE q.user_id = p_user_id AND q.metadata IS NOT NULL;
    END IF;
    LOOP
        WITH seen AS MATERIALIZED (
            SELECT t.id, t.occurred_at, t.metadata IS NOT NULL AS has_metadata FROM centile_store.score_transactions t
            WHERE t.board_id = v_board_id AND t.user_id = p_user_id AND (t.occurred_at, t.id) > (v_at, v_id)
            ORDER BY t.occurred_at, t.id LIMIT v_left
        ), erased AS (
            UPDATE centile_store.score_transactions t SET metadata = NULL
            FROM seen s WHERE s.has_metadata AND t.id = s.id AND t.occurred_at = s.occurred_at)
        SELECT count(*), max(s.occurred_at), (array_agg(s.id ORDER BY s.occurred_at DESC, s.id DESC))[1] INTO v_seen, v_at, v_id FROM seen s;
        v_left := v_left - v_seen;
        EXIT WHEN v_left = 0;
        SELECT least((SELECT min(b.id) FROM centile_store.boards b WHERE b.id > v_board_id),
                     (SELECT min(p.board_id) FROM centile_store.players p WHERE p.user_id = p_user_id AND p.board_id > v_board_id)), '-infinity', 0
        INTO v_board_id, v_at, v_id;
        EXIT WHEN v_board_id IS NULL;
    END LOOP;
    is_done := v_board_id IS NULL;
    IF NOT is_done THEN
        UPDATE centile_store.erasures e SET next_board_id = v_board_id, last_event_at = v_at, last_ledger_id = v_id
        WHERE e.user_id = p_user_id;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.erase_metadata(bigint, integer) IS
'Removes the metadata of a player''s events, some per call, and returns whether none is left. Example: SELECT centile_store.erase_metadata(1, 10000);';
