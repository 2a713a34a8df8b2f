-- From lane and log, because either may lack rows.
CREATE OR REPLACE FUNCTION centile_store.logged_batches(p_board_id integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT ARRAY(SELECT coalesce(greatest(centile_store.last_logged(b.id, n::smallint),
                (SELECT l.batch FROM centile_store.board_lanes l WHERE l.board_id = b.id AND l.lane = n ORDER BY l.batch DESC LIMIT 1)), 0) FROM generate_series(0, b.lanes - 1) AS n ORDER BY n)
            FROM centile_store.boards b WHERE b.id = p_board_id);
END
$$;

COMMENT ON FUNCTION centile_store.logged_batches(integer) IS
'The newest batch of each lane of a board, lane 0 first; NULL without the board. Example: SELECT centile_store.logged_batches(1);';
