-- Rank indexes follow within milliseconds; one that stood still for longer than p_kept loads anew. A bounded step at a time: the oldest
-- batches of each lane are looked at, and no more than p_limit rows go.
CREATE FUNCTION centile.forget_batch_changes(p_kept interval DEFAULT interval '1 hour', p_limit integer DEFAULT 10000) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    WITH gone AS (
        DELETE FROM centile_store.batch_changes c
        USING (SELECT o.board_id, o.lane, o.batch
               FROM centile_store.boards b
               CROSS JOIN generate_series(0, b.lanes - 1) AS n
               CROSS JOIN LATERAL (SELECT x.board_id, x.lane, x.batch, x.changed_at FROM centile_store.batch_changes x
                                   WHERE x.board_id = b.id AND x.lane = n ORDER BY x.batch LIMIT p_limit) o
               WHERE o.changed_at < now() - p_kept
               LIMIT p_limit) old
        WHERE c.board_id = old.board_id AND c.lane = old.lane AND c.batch = old.batch
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION centile.forget_batch_changes(interval, integer) IS
'Deletes what is older from the feed of rank indexes and returns how many batches. Example: SELECT centile.forget_batch_changes();';
