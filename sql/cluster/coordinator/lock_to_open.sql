-- Periods begin although workers are down. centile_lanes.complete_workers copies them to these later.
CREATE OR REPLACE FUNCTION centile_store.lock_to_open(p_board_id integer) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
-- For a server that hangs.
SET citus.node_connection_timeout = '3s'
AS $$
BEGIN
    RETURN centile_lanes.lock_on_servers(p_board_id, ARRAY(
        SELECT n.groupid FROM run_command_on_workers('SELECT 1') r JOIN pg_dist_node n USING (nodename, nodeport) WHERE NOT r.success));
END
$$;

COMMENT ON FUNCTION centile_store.lock_to_open(integer) IS
'Takes a board''s structure lock for new periods or segments, and returns the board.';
