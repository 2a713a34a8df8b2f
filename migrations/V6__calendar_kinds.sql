-- Boards may also keep hours, quarters and years, and no season may have a name that could mean a
-- relation to the current one. The tables have one row per board and per period, so checking the new
-- constraints takes little time.

ALTER TABLE centile_store.boards
    DROP CONSTRAINT boards_periods_known,
    ADD CONSTRAINT boards_periods_known CHECK (
        periods <@ '{all_time,hour,day,week,month,quarter,year}' AND cardinality(periods) >= 1),
    DROP CONSTRAINT boards_kept_archives_kinds,
    ADD CONSTRAINT boards_kept_archives_kinds CHECK (
        jsonb_typeof(kept_archives) = 'object'
        AND kept_archives - '{hour,day,week,month,quarter,year,season}'::text[] = '{}');

ALTER TABLE centile_store.periods
    DROP CONSTRAINT periods_kind_known,
    ADD CONSTRAINT periods_kind_known CHECK (
        kind IN ('all_time', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'season')),
    DROP CONSTRAINT periods_season_form,
    ADD CONSTRAINT periods_season_form CHECK (
        kind <> 'season'
        OR (label ~ '^[a-z0-9][a-z0-9_-]{0,39}$' AND label NOT IN ('previous', 'current', 'next')));
