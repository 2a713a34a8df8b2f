-- The ledger of a cluster is divided by lanes instead of months. This reads the whole ledger.
CREATE OR REPLACE VIEW centile.ledger_months AS
SELECT DISTINCT date_trunc('month', t.occurred_at AT TIME ZONE 'UTC')::date AS month, NULL::text AS table_name, NULL::bigint AS size
FROM centile_store.score_transactions t;

COMMENT ON VIEW centile.ledger_months IS
'The months (UTC) that have scores or other acts, without sizes: on a cluster, months have no tables.';
GRANT SELECT ON centile.ledger_months TO centile_reader;
