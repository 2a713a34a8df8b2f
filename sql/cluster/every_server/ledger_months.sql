-- The ledger of a cluster is divided by lanes instead of months. So the view reads all rows to find
-- the months: on the coordinator those of all lanes, on a worker those of its own lanes.
CREATE OR REPLACE VIEW centile.ledger_months AS
SELECT DISTINCT date_trunc('month', t.occurred_at AT TIME ZONE 'UTC')::date AS month, NULL::text AS table_name, NULL::bigint AS size, false AS freeze_due
FROM centile_store.score_transactions t;

COMMENT ON VIEW centile.ledger_months IS
'The months (UTC) that have rows in the ledger. On a cluster, months have no tables, so table_name and size are NULL.';
GRANT SELECT ON centile.ledger_months TO centile_reader;
