-- Takes the structure lock: call it in a separate transaction.
CREATE OR REPLACE FUNCTION centile_store.settled_ledger_end(p_board_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.lock_structure(p_board_id, true);
    RETURN centile_store.ledger_end();
END
$$;

COMMENT ON FUNCTION centile_store.settled_ledger_end(integer) IS
'The ledger id up to which all rows of a board are committed; later rows have higher ids. Example: SELECT centile_store.settled_ledger_end(1) > 0 AS has_rows;';
