-- Every batch is applied in its own transaction.
CREATE OR REPLACE FUNCTION centile_store.logged_batches(p_board_id integer) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
    SELECT '{}'::bigint[]
$$;

COMMENT ON FUNCTION centile_store.logged_batches(integer) IS
'No batches: none has to be applied.';
