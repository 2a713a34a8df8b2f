-- Under a board's exclusive structure lock, every later row of the board has a higher id.
CREATE OR REPLACE FUNCTION centile_store.ledger_end() RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(max(t.id), 0) FROM centile_store.score_transactions t
$$;

COMMENT ON FUNCTION centile_store.ledger_end() IS
'The highest id in the ledger. Example: SELECT centile_store.ledger_end() > 0 AS has_rows;';
