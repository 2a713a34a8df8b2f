-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.applied_batches(p_board_id integer, p_lanes integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN ARRAY(
        SELECT coalesce((SELECT a.batch FROM centile_store.applied a
                         WHERE a.board_id = p_board_id AND a.lane = n ORDER BY a.batch DESC LIMIT 1), 0)
        FROM generate_series(0, p_lanes - 1) AS n
        ORDER BY n);
END
$$;

COMMENT ON FUNCTION centile_store.applied_batches(integer, integer) IS
'The applied batch of each lane of a board, lane 0 first. Example: SELECT centile_store.applied_batches(1, 2);';
