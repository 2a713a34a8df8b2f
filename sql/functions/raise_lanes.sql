-- Restores missing lanes, and raises those that lag behind the log, or behind p_batches and p_times
-- from the ledger (centile_store.ledger_lanes). A cut-off takes its batch from the lane, so a lane
-- must not lag. If the log lacks the batches in between, rank indexes reload.
CREATE OR REPLACE FUNCTION centile_store.raise_lanes(p_board_id integer, p_batches bigint[], p_times timestamptz[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.lock_structure(p_board_id, true);
    INSERT INTO centile_store.board_lanes (board_id, lane, batch, last_at)
    SELECT p_board_id, n - 1, 0, '2000-01-01 00:00:00+00' FROM generate_subscripts(p_batches, 1) AS n
    WHERE NOT EXISTS (SELECT FROM centile_store.board_lanes l WHERE l.board_id = p_board_id AND l.lane = n - 1);
    UPDATE centile_store.board_lanes l
    SET batch = greatest(l.batch, x.batch), last_at = greatest(l.last_at, x.at)
    FROM (SELECT n - 1 AS lane, greatest(p_batches[n], centile_store.last_logged(p_board_id, (n - 1)::smallint)) AS batch, p_times[n] AS at
          FROM generate_subscripts(p_batches, 1) AS n) x
    WHERE l.board_id = p_board_id AND l.lane = x.lane AND (l.batch < x.batch OR l.last_at < x.at);
END
$$;

COMMENT ON FUNCTION centile_store.raise_lanes(integer, bigint[], timestamptz[]) IS
'Restores missing lanes of a board, and raises those behind the ledger or the log. Example: SELECT centile_store.raise_lanes(1, l.batches, l.times) FROM centile_store.ledger_lanes(1) l;';
