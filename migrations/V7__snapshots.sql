-- Snapshots of the all-time ranking. A snapshot is a period that begins with the board, ends with a
-- day, week or month, and never has a live ranking: it is closed once its end has passed.

ALTER TABLE centile_store.boards
    ADD COLUMN snapshots text,
    ADD CONSTRAINT boards_snapshots_known CHECK (
        snapshots IS NULL OR (snapshots IN ('day', 'week', 'month') AND 'all_time' = ANY (periods))),
    DROP CONSTRAINT boards_kept_archives_kinds,
    ADD CONSTRAINT boards_kept_archives_kinds CHECK (
        jsonb_typeof(kept_archives) = 'object'
        AND kept_archives - '{hour,day,week,month,quarter,year,season,snapshot}'::text[] = '{}');
COMMENT ON COLUMN centile_store.boards.snapshots IS
    'Kind of period at whose end the all-time ranking is archived; NULL for never.';

ALTER TABLE centile_store.periods
    DROP CONSTRAINT periods_kind_known,
    ADD CONSTRAINT periods_kind_known CHECK (
        kind IN ('all_time', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'season', 'snapshot')),
    DROP CONSTRAINT periods_open_has_ranking,
    ADD CONSTRAINT periods_open_has_ranking CHECK (
        CASE kind WHEN 'snapshot' THEN ranking_id IS NULL ELSE (state = 'open') = (ranking_id IS NOT NULL) END);

-- Finds the snapshots that hold a time.
CREATE INDEX periods_snapshot_ends_idx ON centile_store.periods (board_id, ends_at) WHERE kind = 'snapshot';
