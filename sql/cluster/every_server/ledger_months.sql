-- The ledger of a cluster is divided by lanes instead of months.
CREATE OR REPLACE VIEW centile.ledger_months AS
SELECT NULL::date AS month, NULL::text AS table_name, NULL::bigint AS size WHERE false;

COMMENT ON VIEW centile.ledger_months IS
'The ledger''s months (UTC), each a table, with their sizes in bytes: none on a cluster.';
GRANT SELECT ON centile.ledger_months TO centile_reader;
