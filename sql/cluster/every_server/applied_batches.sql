-- Every batch is applied in its own transaction.
CREATE OR REPLACE FUNCTION centile_store.applied_batches(p_board_id integer, p_lanes integer) RETURNS bigint[]
LANGUAGE sql STABLE
AS $$
    SELECT centile_store.lane_batches(p_board_id, p_lanes)
$$;

COMMENT ON FUNCTION centile_store.applied_batches(integer, integer) IS
'The applied batch of each lane of a board, lane 0 first.';
