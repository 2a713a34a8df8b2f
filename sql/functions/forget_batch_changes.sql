-- Indexes in use follow within a second, and an index that misses a deleted batch reloads. A call
-- reads the oldest batches of each lane and deletes at most p_limit rows.
CREATE OR REPLACE FUNCTION centile.forget_batch_changes(p_kept interval DEFAULT interval '1 hour', p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH gone AS (
        DELETE FROM centile_store.batch_changes c
        USING (SELECT o.board_id, o.lane, o.batch
               FROM centile_store.boards b
               CROSS JOIN generate_series(0, b.lanes - 1) AS n
               CROSS JOIN LATERAL (SELECT x.board_id, x.lane, x.batch, x.changed_at FROM centile_store.batch_changes x
                                   WHERE x.board_id = b.id AND x.lane = n ORDER BY x.batch LIMIT greatest(p_limit, 0)) o
               WHERE o.changed_at < now() - p_kept
               LIMIT greatest(p_limit, 0)) old
        WHERE c.board_id = old.board_id AND c.lane = old.lane AND c.batch = old.batch
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION centile.forget_batch_changes(interval, integer) IS
'Deletes batches older than p_kept from the feed of rank indexes and returns their number. Example: SELECT centile.forget_batch_changes();';
