-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.lane_batches(p_board_id integer, p_lanes integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN ARRAY(
        SELECT (SELECT l.batch FROM centile_store.board_lanes l
                WHERE l.board_id = p_board_id AND l.lane = n ORDER BY l.batch DESC LIMIT 1)
        FROM generate_series(0, p_lanes - 1) AS n
        ORDER BY n);
END
$$;

COMMENT ON FUNCTION centile_store.lane_batches(integer, integer) IS
'Number of the last batch of each lane of a board, lane 0 first. Example: SELECT centile_store.lane_batches(1, 2);';
