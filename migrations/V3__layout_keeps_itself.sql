-- What the layout needs to keep itself: counts and batch numbers that stay fast to read while somebody holds an old snapshot,
-- the sizes it aims at, the shape that a period hands on to the next, rankings that are built beside the live one, and imports
-- that fill a board as a whole.

-- Newest first -----------------------------------------------------------------------------------------------------

-- Each of these rows is changed by every batch. Changed in place, all versions that an open snapshot may still want hang on one
-- key, and whoever reads the row passes them all: with a dump running, reading counts went from 0.1 to 2 ms within a minute.
-- With the number of the change at the end of the key, the newest version is the first that is met from the upper end. There
-- is still one row for each lane; the number is raised by every change.
ALTER TABLE centile_store.board_lanes
    DROP CONSTRAINT board_lanes_pkey,
    ADD CONSTRAINT board_lanes_pkey PRIMARY KEY (board_id, lane, batch);
COMMENT ON TABLE centile_store.board_lanes IS
'Per board and writer lane the number of the last batch and the time of the last event; the one row a writer locks. Found from the highest batch down.';

ALTER TABLE centile_store.stripe_counts
    ADD COLUMN revision bigint NOT NULL DEFAULT 1,
    DROP CONSTRAINT stripe_counts_pkey,
    ADD CONSTRAINT stripe_counts_pkey PRIMARY KEY (ranking_id, bucket, lane, revision);
COMMENT ON TABLE centile_store.stripe_counts IS
'Players of each stripe of a bucket, by lane; only sums over lanes mean anything. One row each, found from the highest revision down.';

ALTER TABLE centile_store.bucket_counts
    ADD COLUMN revision bigint NOT NULL DEFAULT 1,
    DROP CONSTRAINT bucket_counts_pkey,
    ADD CONSTRAINT bucket_counts_pkey PRIMARY KEY (ranking_id, lane, revision);
COMMENT ON TABLE centile_store.bucket_counts IS
'Players of each of the 100 buckets, by lane; only sums over lanes mean anything. One row each, found from the highest revision down.';

-- Layout -----------------------------------------------------------------------------------------------------------

ALTER TABLE centile_store.boards
    ADD COLUMN stripe_target integer NOT NULL DEFAULT 400,
    ADD COLUMN balance_from  bigint  NOT NULL DEFAULT 100000,
    ADD COLUMN loading_import_id bigint,
    ADD CONSTRAINT boards_stripe_target_range CHECK (stripe_target BETWEEN 1 AND 100000),
    ADD CONSTRAINT boards_balance_from_range CHECK (balance_from >= 0),
    ADD CONSTRAINT boards_loading_import_fkey FOREIGN KEY (loading_import_id) REFERENCES centile_store.imports (id);
COMMENT ON COLUMN centile_store.boards.stripe_target IS 'Players that a stripe should have: past twice as many it is split.';
COMMENT ON COLUMN centile_store.boards.balance_from IS 'Players from which on a ranking is spread evenly over the buckets.';
COMMENT ON COLUMN centile_store.boards.loading_import_id IS 'The import that fills the board as a whole: no score is taken while it runs.';

ALTER TABLE centile_store.rankings
    ADD COLUMN lanes          smallint,
    ADD COLUMN removed_bucket smallint NOT NULL DEFAULT 0;
UPDATE centile_store.rankings r SET lanes = b.lanes FROM centile_store.boards b WHERE b.id = r.board_id;
ALTER TABLE centile_store.rankings ALTER COLUMN lanes SET NOT NULL;
COMMENT ON COLUMN centile_store.rankings.lanes IS 'Lanes of the board, which cannot change once it has a ranking.';
COMMENT ON TABLE centile_store.rankings IS
'The live standings of a period, or what is being built to take their place; layout is raised by every change of the stripes. Once released, nobody reads it and its rows are removed in steps: entries up to a user id first.';

ALTER TABLE centile_store.periods ADD COLUMN shape bigint[];
COMMENT ON COLUMN centile_store.periods.shape IS 'Rank keys that cut the players of a closed period into up to 100 equal parts: where the next one of its kind is cut first.';

-- JIT costs more than any statement here takes; whoever connects as this role itself has it off.
DO $$
BEGIN
    ALTER ROLE centile_service SET jit = off;
EXCEPTION
    WHEN insufficient_privilege THEN NULL;
END
$$;

-- An import that fills a board as a whole numbers its rows before it writes them.
GRANT USAGE ON SEQUENCE centile_store.score_transactions_id_seq TO centile_service;
