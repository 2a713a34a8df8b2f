-- pg_stat_activity hides sessions of other logins from all but members of pg_read_all_stats, so
-- oldest_snapshot_age of other callers covers their own sessions only. pg_dump locks every table
-- and archive at once.
CREATE OR REPLACE VIEW centile.database_limits AS
SELECT (SELECT max(l.last_at) - clock_timestamp() FROM centile_store.board_lanes l
        WHERE l.last_at > clock_timestamp() AND centile.last_event_at(l.board_id, l.last_at) IS NULL) AS clock_behind,
       (SELECT age(d.datfrozenxid)::bigint FROM pg_catalog.pg_database d WHERE d.datname = current_database()) AS xid_age,
       current_setting('autovacuum_freeze_max_age')::bigint AS xid_age_max,
       r.dead_rows, r.live_rows,
       (SELECT clock_timestamp() - min(a.since)
        FROM (SELECT s.xact_start FROM pg_catalog.pg_stat_activity s WHERE s.backend_xmin IS NOT NULL AND s.pid <> pg_backend_pid()
              UNION ALL SELECT x.prepared FROM pg_catalog.pg_prepared_xacts x) AS a (since)) AS oldest_snapshot_age,
       r.relations,
       current_setting('max_locks_per_transaction')::bigint
           * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint) AS relations_max,
       (SELECT max(u.id) FROM centile_store.users u) AS user_id, 4294967295 AS user_id_max
FROM (SELECT count(*) AS relations, (sum(pg_stat_get_dead_tuples(c.oid)) FILTER (WHERE c.relkind = 'r'))::bigint AS dead_rows,
             (sum(pg_stat_get_live_tuples(c.oid)) FILTER (WHERE c.relkind = 'r'))::bigint AS live_rows
      FROM pg_catalog.pg_class c
      WHERE c.relnamespace IN ('centile_store'::regnamespace, 'centile_archive'::regnamespace) AND c.relkind IN ('r', 'p', 'm')) r;

COMMENT ON VIEW centile.database_limits IS
'How near the database is to limits of PostgreSQL and of the service, in one row, for alarms and metrics. Example: SELECT clock_behind, xid_age < xid_age_max AS is_frozen_in_time, relations < relations_max AS can_be_dumped, user_id, user_id_max FROM centile.database_limits;';
GRANT SELECT ON centile.database_limits TO centile_reader;
