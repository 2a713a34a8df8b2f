-- The end of the ledger for a board: every row of the board up to it is committed, and every later one has a higher id. Takes the
-- structure lock for the moment of the transaction: call it in one of its own.
CREATE OR REPLACE FUNCTION centile_store.settled_ledger_end(p_board_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.lock_structure(p_board_id, true);
    RETURN centile_store.ledger_end();
END
$$;

COMMENT ON FUNCTION centile_store.settled_ledger_end(integer) IS
'The ledger id up to which a board''s rows are all there. Example: SELECT centile_store.settled_ledger_end(1) > 0 AS has_rows;';
