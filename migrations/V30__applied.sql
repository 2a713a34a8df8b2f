-- Bucket rows and bucket counts follow the log of batches: they no longer change in the transaction
-- of a batch.
CREATE TABLE centile_store.applied (
    board_id integer  NOT NULL,
    lane     smallint NOT NULL,
    batch    bigint   NOT NULL,
    -- Found from the highest batch down: older versions remain while another session holds a
    -- snapshot.
    CONSTRAINT applied_pkey PRIMARY KEY (board_id, lane, batch)
) WITH (fillfactor = 20);
COMMENT ON TABLE centile_store.applied IS
    'The applied batch of each lane: the bucket rows and bucket counts of all current rankings '
    'contain the log up to it. No row means 0.';
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.applied TO centile_service;
-- Until now, every batch was applied in its own transaction.
INSERT INTO centile_store.applied (board_id, lane, batch)
SELECT l.board_id, l.lane, max(l.batch) FROM centile_store.board_lanes l GROUP BY l.board_id, l.lane;
ALTER TABLE centile_store.bucket_counts ALTER COLUMN revision SET DEFAULT 0;
COMMENT ON COLUMN centile_store.bucket_counts.revision IS
    'The batch that last changed these counts; a layout step keeps it.';
ALTER TABLE centile_store.rankings ADD COLUMN damaged_at timestamptz;
COMMENT ON COLUMN centile_store.rankings.damaged_at IS
    'When applying a batch showed that bucket rows or counts do not match the log, or that the log '
    'lacks a batch. The ranking needs a rebuild.';
