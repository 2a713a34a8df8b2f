-- Requests without a period read the current one of this kind.
ALTER TABLE centile_store.boards ADD COLUMN default_period text NOT NULL DEFAULT 'all_time';
UPDATE centile_store.boards SET default_period = periods[1] WHERE NOT periods @> '{all_time}';
COMMENT ON COLUMN centile_store.boards.default_period IS
    'The kind of period that requests without a period read.';
ALTER TABLE centile_store.boards
    ADD CONSTRAINT boards_default_period_kept CHECK (default_period = ANY (periods) OR periods = '{}');
COMMENT ON CONSTRAINT boards_default_period_kept ON centile_store.boards IS
    'default_period: must be a kind of period that the board keeps';
