-- The exclusive structure lock shows that no writer holds a lane.
CREATE OR REPLACE FUNCTION centile_store.settle_lanes(p_board_id integer, p_waits boolean, OUT ledger_end bigint, OUT lanes smallint[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    lanes := ARRAY(SELECT generate_series(0, (centile_store.lock_structure(p_board_id, true)).lanes - 1)::smallint);
    ledger_end := centile_store.ledger_end();
END
$$;

COMMENT ON FUNCTION centile_store.settle_lanes(integer, boolean) IS
'The highest id in the ledger, and the lanes of a board whose later rows have higher ones.';
