-- Tiers by score, rank or percentile. A closed period keeps the tiers that its board had at the
-- closing.

ALTER TABLE centile_store.boards
    ADD COLUMN tiers text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD CONSTRAINT boards_tiers_form CHECK (
        cardinality(tiers) <= 20 AND coalesce(array_ndims(tiers), 1) = 1
        AND (cardinality(tiers) = 0 OR E'\n' || array_to_string(tiers, E'\n', '') ~ ('^(\n'
            || '[^: \u0001-\u001f\u007f-\u009f]([^:\u0001-\u001f\u007f-\u009f]{0,38}[^: \u0001-\u001f\u007f-\u009f])?: '
            || '(top (100|[1-9][0-9]?(\.[0-9]?[1-9])?|0\.[0-9]?[1-9]) %|rank [1-9][0-9]{0,17}|score (0|-?[1-9][0-9]{0,17})))+$'))
        -- No NULL, and no line feed in an element.
        AND cardinality(string_to_array(array_to_string(tiers, E'\n'), E'\n')) = cardinality(tiers)
        -- No name twice.
        AND array_to_string(tiers, E'\n') !~ '(^|\n)([^:\n]+): [^\n]*\n([^\n]*\n)*\2: ');
COMMENT ON COLUMN centile_store.boards.tiers IS
    'Up to 20 tiers with different names, best first: gold: top 10 %, gold: rank 100 or gold: score 5000.';

ALTER TABLE centile_store.periods
    ADD COLUMN tiers text[] COLLATE "C" NOT NULL DEFAULT '{}';
COMMENT ON COLUMN centile_store.periods.tiers IS
    'Tiers of a closed period: those of the board at the closing.';
