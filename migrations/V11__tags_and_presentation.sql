-- Tags group boards. A score format, a description, an icon and a colour say how to show a board;
-- they do not touch scores.

ALTER TABLE centile_store.boards
    ADD COLUMN tags text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD CONSTRAINT boards_tags_form CHECK (
        cardinality(tags) <= 20
        AND array_to_string(tags, ',', '') ~ '^([a-z0-9][a-z0-9_-]{0,39}(,[a-z0-9][a-z0-9_-]{0,39})*)?$'
        -- No NULL, and no comma in an element.
        AND cardinality(string_to_array(array_to_string(tags, ','), ',')) = cardinality(tags)),
    ADD COLUMN score_format text COLLATE "C" NOT NULL DEFAULT 'number',
    ADD CONSTRAINT boards_score_format_form CHECK (
        octet_length(score_format) <= 64
        AND score_format ~ '^((number|decimal:([1-9]|1[0-8]))( [^ [:cntrl:]]([^[:cntrl:]]*[^ [:cntrl:]])?)?|duration:(ms|s))$'),
    ADD COLUMN description text,
    ADD CONSTRAINT boards_description_length CHECK (octet_length(description) BETWEEN 1 AND 1000),
    ADD COLUMN icon_url text COLLATE "C",
    ADD CONSTRAINT boards_icon_url_form CHECK (
        octet_length(icon_url) <= 1024 AND icon_url ~ '^[!-~]+$' AND icon_url ~ '^(https://[^/?#]|/[^/])'
        AND strpos(icon_url, '\') = 0),
    ADD COLUMN colour text COLLATE "C",
    ADD CONSTRAINT boards_colour_form CHECK (colour ~ '^#[0-9a-f]{6}$');
COMMENT ON COLUMN centile_store.boards.tags IS
    'Up to 20 names that group boards, in alphabetical order.';
COMMENT ON COLUMN centile_store.boards.score_format IS
    'How scores are shown: number, decimal:2, duration:ms or duration:s; after number and decimals, '
    'a space and a unit.';
COMMENT ON COLUMN centile_store.boards.description IS
    'Text about the board, shown on its page.';
COMMENT ON COLUMN centile_store.boards.icon_url IS
    'Picture of the board: an https URL, or a path on the same host.';
COMMENT ON COLUMN centile_store.boards.colour IS
    'Colour of the board, such as #1f6feb, with which its page is decorated.';
