-- Indexes in use follow within a second, and an index that needs a deleted batch reloads. Batches
-- that are not applied stay, and so does the newest of each lane, where rebuilds find the lane's
-- number. A call reads the oldest batches of each lane and deletes at most p_limit rows.
CREATE OR REPLACE FUNCTION centile_store.forget_batches(p_kept interval DEFAULT interval '20 minutes', p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH gone AS (
        DELETE FROM centile_store.batch_log c
        USING (SELECT o.board_id, o.lane, o.batch
               FROM centile_store.boards b
               CROSS JOIN generate_series(0, b.lanes - 1) AS n
               CROSS JOIN LATERAL (SELECT x.board_id, x.lane, x.batch, x.written_at FROM centile_store.batch_log x
                                   WHERE x.board_id = b.id AND x.lane = n AND x.batch < centile_store.last_logged(b.id, n::smallint)
                                     AND x.batch <= (centile_store.applied_batches(b.id, b.lanes))[n + 1] ORDER BY x.batch LIMIT greatest(p_limit, 0)) o
               WHERE o.written_at < now() - p_kept
               LIMIT greatest(p_limit, 0)) old
        WHERE c.board_id = old.board_id AND c.lane = old.lane AND c.batch = old.batch
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION centile_store.forget_batches(interval, integer) IS
'Deletes batches older than p_kept from the log, except those that are not applied and the newest of each lane, and returns their number. Example: SELECT centile_store.forget_batches();';
