-- The ledger of a cluster is divided by lanes instead of months.
CREATE OR REPLACE FUNCTION centile.ensure_ledger_months(p_from timestamptz DEFAULT now(), p_until timestamptz DEFAULT now() + interval '2 months')
RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT 0
$$;

COMMENT ON FUNCTION centile.ensure_ledger_months(timestamptz, timestamptz) IS
'Creates months of the ledger, and returns their number: 0 on a cluster.';
