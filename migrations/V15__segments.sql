-- Segments: rankings of only those players who have the same value of an attribute, such as
-- country:DE. Each is a row of periods with its own ranking and archive, beside the whole period.

ALTER TABLE centile_store.boards
    ADD COLUMN segments text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD CONSTRAINT boards_segments_form CHECK (
        cardinality(segments) <= 4 AND coalesce(array_ndims(segments), 1) = 1
        AND array_to_string(segments, ',', '') ~ '^([a-z0-9_]{1,32}(,[a-z0-9_]{1,32})*)?$'
        -- No NULL, and no comma in an element.
        AND cardinality(string_to_array(array_to_string(segments, ','), ',')) = cardinality(segments)
        -- No name twice.
        AND array_to_string(segments, ',') !~ '(^|,)([^,]+),([^,]+,)*\2(,|$)'),
    ADD CONSTRAINT boards_segments_rules CHECK (
        segments = '{}' OR (mode <> 'combined' AND snapshots IS NULL AND rolling = '{}'));
COMMENT ON COLUMN centile_store.boards.segments IS
    'Up to 4 attributes of users. Each period also has a ranking for each value of each attribute.';

ALTER TABLE centile_store.users
    ADD COLUMN attributes jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN centile_store.users.attributes IS
    'Values of attributes by name, such as {"country": "DE"}.';

CREATE TABLE centile_store.attribute_values (
    attribute  text        COLLATE "C" NOT NULL,
    value      text        COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT attribute_values_pkey PRIMARY KEY (attribute, value),
    CONSTRAINT attribute_values_length CHECK (char_length(value) BETWEEN 1 AND 64),
    CONSTRAINT attribute_values_printable CHECK (value !~ '[\u0001-\u001f\u007f-\u009f]')
);
COMMENT ON TABLE centile_store.attribute_values IS
    'All values that users'' attributes have had: at most 1,000 of each attribute.';

CREATE TABLE centile_store.attribute_moves (
    user_id    bigint      NOT NULL,
    number     bigint      NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT attribute_moves_pkey PRIMARY KEY (user_id)
);
COMMENT ON TABLE centile_store.attribute_moves IS
    'Users whose attributes have changed, until they are in their new segments on all boards. '
    'number is the profile revision of the last change.';

-- Without foreign keys, whose checks would slow down the first score of each player on a board.
CREATE TABLE centile_store.segment_members (
    user_id    bigint      NOT NULL,
    batch      bigint      NOT NULL,
    changed_at timestamptz NOT NULL,
    board_id   integer     NOT NULL,
    lane       smallint    NOT NULL,
    is_member  boolean     NOT NULL,
    segment    text        COLLATE "C" NOT NULL,
    CONSTRAINT segment_members_pkey PRIMARY KEY (board_id, user_id, segment, batch)
);
COMMENT ON TABLE centile_store.segment_members IS
    'Append-only history of players'' segments on a board. The row with the highest batch says '
    'whether the player belongs to the segment; for a period, only rows from before its end count. '
    'A row with an empty segment marks a player whose segments are recorded. Rows of a player''s '
    'first batch have the time -infinity, so they count for every period.';
CREATE INDEX segment_members_segment_idx ON centile_store.segment_members (board_id, segment, user_id, batch);

ALTER TABLE centile_store.periods
    ADD COLUMN segment text COLLATE "C" NOT NULL DEFAULT '',
    DROP CONSTRAINT periods_label_key,
    ADD CONSTRAINT periods_label_key UNIQUE (board_id, kind, label, segment),
    ADD CONSTRAINT periods_segment_form CHECK (
        segment = '' OR (segment ~ '^[a-z0-9_]{1,32}:.' AND kind NOT IN ('snapshot', 'rolling')));
COMMENT ON COLUMN centile_store.periods.segment IS
    'Attribute and value of the players in this ranking, such as country:DE; empty for all players. '
    'The period of all players has the same kind, label and bounds.';

-- Lets look-ups of whole periods skip the segments, however many there are.
DROP INDEX centile_store.periods_starts_at_idx;
CREATE INDEX periods_starts_at_idx ON centile_store.periods (board_id, kind, segment, starts_at);

GRANT SELECT, INSERT ON centile_store.attribute_values, centile_store.segment_members TO centile_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.attribute_moves TO centile_service;
