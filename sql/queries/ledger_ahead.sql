-- The number of months of the ledger to come, and whether the last begins within a month.
SELECT count(*) FILTER (WHERE month > now()) AS "months!", coalesce(max(month) < now() + interval '1 month', true) AS "ends_soon!"
FROM centile.ledger_months
