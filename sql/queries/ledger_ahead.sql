-- The number of months of the ledger to come, and whether the last begins within three weeks. After
-- maintenance, it begins at least four weeks later. Also the months that are over and not frozen.
SELECT count(*) FILTER (WHERE month > now()) AS "months!", coalesce(max(month) < now() + interval '3 weeks', true) AS "ends_soon!",
       count(*) FILTER (WHERE freeze_due) AS "to_freeze!"
FROM centile.ledger_months
