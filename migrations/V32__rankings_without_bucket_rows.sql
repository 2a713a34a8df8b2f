-- Rankings without bucket rows. Rank indexes answer for them, and SQL scans the players.
ALTER TABLE centile_store.boards
    ADD COLUMN buckets text NOT NULL DEFAULT 'all',
    ADD CONSTRAINT boards_buckets_known CHECK (buckets IN ('all', 'all_time')),
    ADD CONSTRAINT boards_buckets_rules CHECK (buckets = 'all' OR mode <> 'combined');
COMMENT ON COLUMN centile_store.boards.buckets IS
    'Which new rankings have bucket rows: all, or only those of all time.';

ALTER TABLE centile_store.rankings
    ADD COLUMN has_bucket_rows boolean NOT NULL DEFAULT true,
    DROP CONSTRAINT rankings_hundred_places,
    ADD CONSTRAINT rankings_places CHECK (
        cardinality(buckets) = CASE WHEN has_bucket_rows THEN 100 ELSE 1 END
        AND cardinality(low_rank_keys) = cardinality(buckets) AND cardinality(low_tie_keys) = cardinality(buckets)
        AND cardinality(low_user_keys) = cardinality(buckets) AND (has_bucket_rows OR buckets = '{100}'));
COMMENT ON COLUMN centile_store.rankings.has_bucket_rows IS
    'False for a ranking without bucket rows and counts. Its only bucket has the number 100, which '
    'stands for the view leaderboard.';
