-- Rolling windows: periods of kind rolling that end with the current day or hour and overlap each
-- other. The service fills a window from the ledger before it becomes current. Meanwhile
-- its state is preparing, and it has no ranking.

ALTER TABLE centile_store.boards
    ADD COLUMN rolling text[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT boards_rolling_lengths CHECK (
        cardinality(rolling) <= 8
        AND array_to_string(rolling, ',', '') ~ '^((([2-9]|[1-9]\d|[12]\d\d|3[0-5]\d|36[0-6])d|24h)(,|$))*$'
        -- No NULL, and no comma in an element.
        AND cardinality(string_to_array(array_to_string(rolling, ','), ',')) = cardinality(rolling)),
    DROP CONSTRAINT boards_kept_archives_kinds,
    ADD CONSTRAINT boards_kept_archives_kinds CHECK (
        jsonb_typeof(kept_archives) = 'object'
        AND kept_archives - '{hour,day,week,month,quarter,year,season,snapshot,rolling}'::text[] = '{}');
COMMENT ON COLUMN centile_store.boards.rolling IS
    'Lengths of the rolling windows of the board: 2d to 366d, and 24h.';
COMMENT ON COLUMN centile_store.boards.kept_archives IS
    'Number of archives to keep of each kind of period. All of a kind that is absent, but none of '
    'rolling windows.';

ALTER TABLE centile_store.periods
    DROP CONSTRAINT periods_kind_known,
    ADD CONSTRAINT periods_kind_known CHECK (
        kind IN ('all_time', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'season', 'snapshot', 'rolling')),
    DROP CONSTRAINT periods_state_known,
    ADD CONSTRAINT periods_state_known CHECK (
        state IN ('open', 'closed') OR (state = 'preparing' AND kind = 'rolling'));

-- Finds the few windows that are not closed.
CREATE INDEX periods_window_idx ON centile_store.periods (board_id, ends_at)
    WHERE kind = 'rolling' AND state <> 'closed';
