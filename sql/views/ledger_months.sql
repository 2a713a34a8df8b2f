-- centile.ensure_ledger_months names the tables. A month is frozen once, a day after its end, when no
-- snapshot is older. Later rows of an import are frozen at most once a day. A crash of PostgreSQL
-- loses the time of the vacuum; repeating it reads little more than the visibility map.
CREATE OR REPLACE VIEW centile.ledger_months AS
SELECT m.month, 'centile_store.' || c.relname AS table_name, pg_total_relation_size(c.oid) AS size,
       m.settled_at <= statement_timestamp()
       AND (v.vacuumed_at < m.settled_at
            OR (v.vacuumed_at < statement_timestamp() - interval '1 day'
                AND (pg_stat_get_ins_since_vacuum(c.oid) > 0 OR pg_stat_get_last_autovacuum_time(c.oid) > v.vacuumed_at))) AS freeze_due
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
CROSS JOIN LATERAL (SELECT to_date(right(c.relname, 7), 'YYYY_MM') AS month,
                           (to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month 1 day') AT TIME ZONE 'UTC' AS settled_at) m
CROSS JOIN LATERAL (SELECT coalesce(pg_stat_get_last_vacuum_time(c.oid), '-infinity') AS vacuumed_at) v
WHERE i.inhparent = 'centile_store.score_transactions'::regclass;

COMMENT ON VIEW centile.ledger_months IS
'The ledger''s months (UTC), each a table, with their sizes in bytes, and whether maintenance has yet to freeze the rows of a month that is over. Example: SELECT month, table_name, size, freeze_due FROM centile.ledger_months ORDER BY month LIMIT 1;';
GRANT SELECT ON centile.ledger_months TO centile_reader;
