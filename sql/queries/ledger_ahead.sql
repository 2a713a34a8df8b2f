-- The number of months of the ledger to come, and whether the last begins within three weeks. After
-- maintenance, it begins at least four weeks later.
SELECT count(*) FILTER (WHERE month > now()) AS "months!", coalesce(max(month) < now() + interval '3 weeks', true) AS "ends_soon!"
FROM centile.ledger_months
