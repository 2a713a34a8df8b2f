-- A page of a board's ledger after an id in each lane, with the state of its snapshot in every row:
-- one row even without transactions.
WITH state AS MATERIALIZED (
    SELECT centile.epoch() AS epoch, centile_store.lane_batches(b.id, b.lanes) AS batches, centile_store.ledger_end() AS ledger_end
    FROM centile_store.boards b WHERE b.id = $1)
SELECT s.epoch AS "epoch!", s.batches AS "batches!", s.ledger_end AS "ledger_end!",
       t.transaction_id AS "transaction_id?", t.lane AS "lane?", t.batch AS "batch?", t.user_id AS "user_id?", t.kind AS "kind?",
       t.points AS "points?", t.tiebreak AS "tiebreak?", t.reason AS "reason?", t.voids AS "voids?", t.event_id AS "event_id?",
       t.occurred_at AS "occurred_at?", t.metadata AS "metadata?"
FROM state s
LEFT JOIN LATERAL centile_store.transactions_after($1, $2, $3) t ON true
ORDER BY t.transaction_id
