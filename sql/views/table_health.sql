-- Covers this server only: on a cluster, each server has its own tables. pg_stat_activity hides sessions of
-- other logins from all but members of pg_read_all_stats, as in database_limits.
CREATE OR REPLACE VIEW centile.table_health AS
SELECT format('%I.%I', s.schemaname, s.relname) COLLATE "C" AS table_name, s.n_live_tup AS live_rows, s.n_dead_tup AS dead_rows,
       round(s.n_tup_hot_upd::numeric / nullif(s.n_tup_upd, 0), 2) AS hot_ratio,
       greatest(age(c.relfrozenxid), age(t.relfrozenxid)) AS xid_age,
       greatest(s.last_vacuum, s.last_autovacuum) AS last_vacuum, greatest(s.last_analyze, s.last_autoanalyze) AS last_analyze,
       l.oldest_snapshot_age, pg_total_relation_size(c.oid) AS size
FROM pg_catalog.pg_stat_all_tables s
JOIN pg_catalog.pg_class c ON c.oid = s.relid
LEFT JOIN pg_catalog.pg_class t ON t.oid = c.reltoastrelid
CROSS JOIN (SELECT d.oldest_snapshot_age FROM centile.database_limits d) l
WHERE s.schemaname IN ('centile_store', 'centile_archive', 'centile_lanes');

COMMENT ON VIEW centile.table_health IS
'Rows, dead rows, share of updates in place (HOT), age of the oldest transaction id, last vacuum and analyze, and bytes of every table and archive. oldest_snapshot_age is the age of the oldest snapshot, which keeps vacuum from removing dead rows; it covers all sessions for members of pg_read_all_stats, otherwise only the caller''s own. Example: SELECT table_name, dead_rows < 100000 AS is_vacuumed, xid_age < 200000000 AS is_frozen_in_time FROM centile.table_health WHERE table_name = ''centile_store.players'';';
GRANT SELECT ON centile.table_health TO centile_reader;
