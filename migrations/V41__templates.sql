-- Boards of a template share its rules, lanes, log and periods. A template is a row of boards whose
-- slug is a pattern, such as level-*; it has no players of its own. A board of a template is a row of
-- template_boards. Ledger, ids and standings refer to it by an id from the sequence of boards.

ALTER TABLE centile_store.boards
    ADD COLUMN is_template boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT boards_slug_form,
    ADD COLUMN deleted_at timestamptz,
    ADD CONSTRAINT boards_slug_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,39}$' OR is_template OR deleted_at IS NOT NULL),
    ADD CONSTRAINT boards_pattern_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,38}[*]$' OR NOT is_template OR deleted_at IS NOT NULL),
    ADD CONSTRAINT boards_template_rules CHECK (
        NOT is_template OR (mode <> 'combined' AND snapshots IS NULL AND rolling = '{}' AND segments = '{}'));
COMMENT ON COLUMN centile_store.boards.is_template IS
    'Whether other boards have these rules, lanes and periods. The slug is then the pattern of their slugs.';
COMMENT ON COLUMN centile_store.boards.deleted_at IS
    'When the board was deleted. Its slug is then free, and maintenance removes its rows.';
COMMENT ON CONSTRAINT boards_pattern_form ON centile_store.boards IS
    'pattern: must have up to 39 of a-z, 0-9, - and _, begin with a letter, and end with *';
COMMENT ON CONSTRAINT boards_template_rules ON centile_store.boards IS
    'template: has no combined mode, snapshots, rolling windows or segments';
CREATE INDEX boards_templates_idx ON centile_store.boards (slug) WHERE is_template;

CREATE TABLE centile_store.templates (
    board_id   integer PRIMARY KEY CONSTRAINT templates_board_fkey REFERENCES centile_store.boards (id),
    name       text COLLATE "C" NOT NULL CONSTRAINT templates_name_key UNIQUE
               CONSTRAINT templates_name_form CHECK (name ~ '^[a-z][a-z0-9_-]{0,39}$'),
    max_boards integer NOT NULL DEFAULT 1000000 CONSTRAINT templates_max_boards_range CHECK (max_boards BETWEEN 1 AND 100000000),
    boards     integer NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
COMMENT ON TABLE centile_store.templates IS
    'Templates of boards, with the number of their boards and its maximum.';

CREATE TABLE centile_store.template_boards (
    id          integer PRIMARY KEY DEFAULT nextval('centile_store.boards_id_seq'),
    template_id integer NOT NULL CONSTRAINT template_boards_template_fkey REFERENCES centile_store.templates (board_id),
    slug        text COLLATE "C" NOT NULL CONSTRAINT template_boards_slug_key UNIQUE
                CONSTRAINT template_boards_slug_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,39}$')
);
COMMENT ON TABLE centile_store.template_boards IS
    'Boards of templates. The first score creates them.';
COMMENT ON COLUMN centile_store.template_boards.template_id IS
    'The template''s row of boards.';

CREATE TABLE centile_store.deletions (
    board_id   integer PRIMARY KEY,
    owner_id   integer NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE centile_store.deletions IS
    'Deleted boards and templates whose rows maintenance has yet to remove.';
COMMENT ON COLUMN centile_store.deletions.owner_id IS
    'The template of the board, or the board itself.';

-- Players and events of boards of templates have the ids of these boards.
ALTER TABLE centile_store.players DROP CONSTRAINT players_board_fkey;
ALTER TABLE centile_store.quarantine DROP CONSTRAINT quarantine_board_fkey;

ALTER TYPE centile_store.pending_event ADD ATTRIBUTE board_id integer;
ALTER TYPE centile_store.player_standings ADD ATTRIBUTE board_id integer;

-- A board of a template has a ranking of its own in each period of the template.
ALTER TABLE centile_store.rankings ADD COLUMN players_of integer;
UPDATE centile_store.rankings SET players_of = board_id;
ALTER TABLE centile_store.rankings ALTER COLUMN players_of SET NOT NULL;
COMMENT ON COLUMN centile_store.rankings.players_of IS
    'The board whose players it ranks: board_id or, in a period of a template, one of its boards.';
CREATE UNIQUE INDEX rankings_of_template_key ON centile_store.rankings (period_id, players_of)
    WHERE players_of <> board_id AND released_at IS NULL;
CREATE INDEX rankings_with_bucket_rows_idx ON centile_store.rankings (id) WHERE has_bucket_rows;

-- A ban or an erasure finds the boards of templates on which a user has played.
CREATE INDEX players_user_idx ON centile_store.players (user_id);

-- Closed periods of boards of templates. An id begins with the month of the period's end, so that
-- each month is a partition of both tables: see centile_store.first_closed_id.
CREATE SEQUENCE centile_store.closed_boards_id_seq;
CREATE TABLE centile_store.closed_boards (
    id               bigint  NOT NULL,
    board_id         integer NOT NULL,
    period_id        bigint  NOT NULL,
    players          bigint  NOT NULL,
    differences      bigint  NOT NULL,
    archive_revision integer NOT NULL DEFAULT 1,
    last_at          timestamptz,
    CONSTRAINT closed_boards_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
COMMENT ON TABLE centile_store.closed_boards IS
    'Closed periods of boards of templates: each board with entries.';
COMMENT ON COLUMN centile_store.closed_boards.period_id IS 'The period of the template.';
COMMENT ON COLUMN centile_store.closed_boards.differences IS
    'Players whose standing did not agree with the ledger when the period was closed.';
COMMENT ON COLUMN centile_store.closed_boards.last_at IS 'The latest time among the entries.';
CREATE INDEX closed_boards_board_idx ON centile_store.closed_boards (board_id, period_id);

CREATE TABLE centile_store.closed_results (
    closed_id  bigint NOT NULL,
    "position" bigint NOT NULL,
    rank       bigint NOT NULL,
    user_id    bigint NOT NULL,
    score      bigint NOT NULL,
    reached_at timestamptz,
    tiebreak   bigint,
    CONSTRAINT closed_results_pkey PRIMARY KEY (closed_id, "position")
) PARTITION BY RANGE (closed_id);
COMMENT ON TABLE centile_store.closed_results IS
    'Results of closed periods of boards of templates, as of the cut-off: a row per player.';
COMMENT ON COLUMN centile_store.closed_results.closed_id IS 'The id of the row of closed_boards.';

CREATE TABLE centile_store.corrected_boards (
    period_id bigint  NOT NULL,
    board_id  integer NOT NULL
);
CREATE INDEX corrected_boards_period_idx ON centile_store.corrected_boards (period_id);
CREATE INDEX corrected_boards_board_idx ON centile_store.corrected_boards (board_id);
COMMENT ON TABLE centile_store.corrected_boards IS
    'Boards of templates whose results in a closed period lack a correction. A row per correction: acts and '
    'refreshes must not wait for each other.';

ALTER TABLE centile_store.cut_offs ADD COLUMN last_board integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN centile_store.cut_offs.last_board IS
    'In a period of a template: the last board whose results are written.';

ALTER TABLE centile_store.inbox ADD COLUMN slug text COLLATE "C";
COMMENT ON COLUMN centile_store.inbox.slug IS
    'Name of a board of the template board_id that did not exist; NULL otherwise.';
CREATE INDEX inbox_slug_idx ON centile_store.inbox (slug) WHERE slug IS NOT NULL;

ALTER TABLE centile_store.outbox
    DROP CONSTRAINT outbox_kind_known,
    ADD CONSTRAINT outbox_kind_known CHECK (kind IN ('period_closed', 'periods_closed')),
    DROP CONSTRAINT outbox_once_key;
CREATE UNIQUE INDEX outbox_once_key ON centile_store.outbox (period_id, kind) WHERE kind = 'period_closed';
CREATE INDEX outbox_period_idx ON centile_store.outbox (period_id) WHERE kind <> 'period_closed';

ALTER TYPE centile_store.player_state ADD ATTRIBUTE is_gone boolean;
COMMENT ON TYPE centile_store.player_state IS
    'A player as begin_batch returns it. user_id is NULL for an unknown user; is_gone says that the player''s board was deleted.';

GRANT SELECT, INSERT, UPDATE, DELETE ON
    centile_store.templates, centile_store.template_boards, centile_store.deletions, centile_store.closed_boards, centile_store.closed_results,
    centile_store.corrected_boards TO centile_service;
GRANT USAGE ON SEQUENCE centile_store.boards_id_seq, centile_store.closed_boards_id_seq TO centile_service;
