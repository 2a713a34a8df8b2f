-- The servers of a cluster, with the size of each database that answers, and the bytes of WAL that the
-- slowest replica of the server has not replayed: NULL without replicas. Subscriptions of Citus do not
-- count.
SELECT n.nodename AS host, n.nodeport AS port, coalesce(a.success, false) AS answers, a.numbers[1] AS bytes, a.numbers[2] AS lag, coalesce(g.groups, '{}') AS groups, coalesce(g.lanes, 0) AS lanes
FROM pg_dist_node n
LEFT JOIN LATERAL (
    SELECT r.success, CASE WHEN r.success THEN r.result::bigint[] END AS numbers
    FROM run_command_on_all_nodes('
        SELECT ARRAY[pg_database_size(current_database()),
                     (SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), p.replay_lsn))::bigint FROM pg_stat_replication p
                      WHERE NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = p.pid AND s.slot_type = ''logical''))]',
        give_warning_for_connection_errors => true) r
    WHERE r.nodeid = n.nodeid) a ON true
LEFT JOIN LATERAL (
    SELECT array_agg(g.number ORDER BY g.number) AS groups, sum(cardinality(g.lanes)) AS lanes FROM centile_lanes.groups g WHERE g.node = n.groupid) g ON true
WHERE n.noderole = 'primary'
ORDER BY n.groupid > 0, n.nodename, n.nodeport
