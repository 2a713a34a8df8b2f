-- All lanes at once: each server answers one query.
CREATE OR REPLACE FUNCTION centile_store.lane_batches(p_board_id integer, p_lanes integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN ARRAY(
        SELECT b.batch
        FROM generate_series(0, p_lanes - 1) AS n
        LEFT JOIN (SELECT l.lane, max(l.batch) AS batch FROM centile_store.board_lanes l WHERE l.board_id = p_board_id GROUP BY l.lane) b ON b.lane = n
        ORDER BY n);
END
$$;

COMMENT ON FUNCTION centile_store.lane_batches(integer, integer) IS
'Number of the last batch of each lane of a board, lane 0 first.';
