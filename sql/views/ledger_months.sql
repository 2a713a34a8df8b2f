-- centile.ensure_ledger_months names the tables.
CREATE OR REPLACE VIEW centile.ledger_months AS
SELECT to_date(right(c.relname, 7), 'YYYY_MM') AS month, 'centile_store.' || c.relname AS table_name, pg_total_relation_size(c.oid) AS size
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'centile_store.score_transactions'::regclass;

COMMENT ON VIEW centile.ledger_months IS
'The ledger''s months (UTC), each a table, with their sizes in bytes. Example: SELECT month, table_name, size FROM centile.ledger_months ORDER BY month LIMIT 1;';
GRANT SELECT ON centile.ledger_months TO centile_reader;
