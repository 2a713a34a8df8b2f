-- Takes the structure lock for a moment, so that all rows up to ledger_end are committed: call it
-- in its own transaction, before the comparison. ledger_end is NULL if a lane has no row, or if
-- other sessions keep the lock.
CREATE OR REPLACE FUNCTION centile_store.begin_verification(p_board_id integer, OUT ledger_end bigint, OUT batches bigint[], OUT times timestamptz[])
LANGUAGE plpgsql VOLATILE
-- Writers of the board wait behind it.
SET lock_timeout = '1s'
AS $$
BEGIN
    PERFORM centile_store.lock_structure(p_board_id, true);
    ledger_end := centile_store.ledger_end();
    SELECT array_agg(l.batch ORDER BY l.lane), array_agg(l.last_at ORDER BY l.lane) INTO batches, times
    FROM centile_store.board_lanes l WHERE l.board_id = p_board_id;
    IF cardinality(batches) IS DISTINCT FROM (SELECT b.lanes::integer FROM centile_store.boards b WHERE b.id = p_board_id) THEN
        ledger_end := NULL;
    END IF;
EXCEPTION WHEN lock_not_available THEN
    NULL;
END
$$;

COMMENT ON FUNCTION centile_store.begin_verification(integer) IS
'The end of the ledger, and the last batch and time of each lane, for centile_store.end_verification. Example: SELECT ledger_end, batches FROM centile_store.begin_verification(1);';
