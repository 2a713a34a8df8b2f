-- Leaves out workers that are down. centile_lanes.copy_periods copies the periods to them later.
CREATE OR REPLACE FUNCTION centile_store.lock_for_opening(p_board_id integer) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
-- Limits the wait for a worker that hangs.
SET citus.node_connection_timeout = '3s'
AS $$
BEGIN
    RETURN centile_lanes.lock_on_servers(p_board_id, ARRAY(
        SELECT n.groupid FROM run_command_on_workers('SELECT 1') r
        JOIN pg_dist_node n USING (nodename, nodeport)
        JOIN pg_dist_placement p USING (groupid)
        JOIN pg_dist_shard s USING (shardid)
        WHERE NOT r.success AND s.logicalrelid = 'centile_lanes.periods'::regclass));
END
$$;

COMMENT ON FUNCTION centile_store.lock_for_opening(integer) IS
'Takes a board''s structure lock exclusively to open periods or segments, and returns the board.';
