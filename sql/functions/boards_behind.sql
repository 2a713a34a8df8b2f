-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.boards_behind() RETURNS SETOF integer
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    SELECT x.board_id
    FROM (SELECT l.board_id, l.lane, max(l.batch) AS batch FROM centile_store.board_lanes l GROUP BY l.board_id, l.lane) x
    LEFT JOIN (SELECT a.board_id, a.lane, max(a.batch) AS batch FROM centile_store.applied a GROUP BY a.board_id, a.lane) a USING (board_id, lane)
    WHERE x.batch > coalesce(a.batch, 0)
    GROUP BY x.board_id;
END
$$;

COMMENT ON FUNCTION centile_store.boards_behind() IS
'Boards with batches that are not applied yet. Example: SELECT * FROM centile_store.boards_behind();';
