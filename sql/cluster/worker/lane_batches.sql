-- NULL for lanes that this server does not have. After a move it may still have copies of their rows.
CREATE OR REPLACE FUNCTION centile_store.lane_batches(p_board_id integer, p_lanes integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN ARRAY(
        SELECT (SELECT b.batch FROM centile_lanes.lanes h JOIN centile_store.board_lanes b ON b.lane = h.lane
                WHERE h.lane = n AND b.board_id = p_board_id AND b.lane = n ORDER BY b.batch DESC LIMIT 1)
        FROM generate_series(0, p_lanes - 1) AS n
        ORDER BY n);
END
$$;

COMMENT ON FUNCTION centile_store.lane_batches(integer, integer) IS
'Number of the last batch of each lane of a board, lane 0 first.';
