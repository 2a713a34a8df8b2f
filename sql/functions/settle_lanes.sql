-- A writer draws ids of the ledger only while it holds its lane's lock. So while this session holds
-- the lock, all rows of the lane are committed, and later rows get higher ids than any existing
-- row.
--
-- With p_waits, the function takes the structure lock first, then locks all lanes, in order.
-- Otherwise it skips lanes that are being written to.
CREATE OR REPLACE FUNCTION centile_store.settle_lanes(p_board_id integer, p_waits boolean, OUT ledger_end bigint, OUT lanes smallint[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_waits THEN
        PERFORM centile_store.lock_structure(p_board_id, false);
        lanes := ARRAY(SELECT l.lane FROM centile_store.board_lanes l WHERE l.board_id = p_board_id ORDER BY l.lane FOR UPDATE);
    ELSE
        lanes := ARRAY(SELECT l.lane FROM centile_store.board_lanes l WHERE l.board_id = p_board_id ORDER BY l.lane FOR UPDATE SKIP LOCKED);
    END IF;
    -- A new snapshot, taken under the locks.
    ledger_end := centile_store.ledger_end();
END
$$;

COMMENT ON FUNCTION centile_store.settle_lanes(integer, boolean) IS
'The highest id in the ledger, and the lanes of a board whose later rows have higher ones. Example: SELECT cardinality(lanes) > 0 AS is_settled FROM centile_store.settle_lanes(1, true);';
