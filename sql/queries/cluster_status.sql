-- The workers of a cluster, with the sizes of the databases that answer.
SELECT n.nodename AS host, n.nodeport AS port, a.success AS answers, a.bytes, coalesce(g.groups, '{}') AS groups, coalesce(g.lanes, 0) AS lanes
FROM pg_dist_node n
LEFT JOIN LATERAL (
    SELECT r.success, CASE WHEN r.success THEN r.result::bigint END AS bytes
    FROM run_command_on_all_nodes('SELECT pg_database_size(current_database())', give_warning_for_connection_errors => true) r
    WHERE r.nodeid = n.nodeid) a ON true
LEFT JOIN LATERAL (
    SELECT array_agg(g.number ORDER BY g.number) AS groups, sum(cardinality(g.lanes)) AS lanes FROM centile_lanes.groups g WHERE g.node = n.groupid) g ON true
WHERE n.groupid > 0 AND n.noderole = 'primary'
ORDER BY n.nodename, n.nodeport
