-- How many months of the ledger are still to come, and whether the last of them begins within a
-- month.
SELECT count(*) FILTER (WHERE month > now()) AS "months!", coalesce(max(month) < now() + interval '1 month', true) AS "ends_soon!"
FROM centile.ledger_months
