-- What closing a period needs: seasons, cut-offs and archives, frozen tops, the outbox that tells of it, imports that closers
-- wait for, retention, an audit log, and roles that may no more than they have to.

-- Serving, closing and refreshing; owns nothing.
DO $$
BEGIN
    -- Who may not make roles is refused before PostgreSQL looks whether there is one.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'centile_service') THEN
        CREATE ROLE centile_service NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role centile_service does not exist and this user may not create it'
            USING HINT = 'As an administrator: CREATE ROLE centile_service NOLOGIN; then migrate again.';
END
$$;

-- Boards -----------------------------------------------------------------------------------------------------------

ALTER TABLE centile_store.boards
    ADD COLUMN frozen_top_size integer NOT NULL DEFAULT 100,
    ADD COLUMN kept_archives   jsonb   NOT NULL DEFAULT '{}',
    ADD CONSTRAINT boards_frozen_top_size_range CHECK (frozen_top_size BETWEEN 1 AND 1000),
    ADD CONSTRAINT boards_kept_archives_kinds CHECK (
        jsonb_typeof(kept_archives) = 'object' AND kept_archives - '{day,week,month,season}'::text[] = '{}'),
    ADD CONSTRAINT boards_kept_archives_positive CHECK (
        NOT jsonb_path_exists(kept_archives, '$.* ? (!(@.type() == "number" && @ >= 1 && @ <= 1000000))')
        -- Whole, and written so: 30, not 30.0.
        AND position('.' IN kept_archives::text) = 0);
COMMENT ON TABLE centile_store.boards IS
'What is ranked, with its rules; layout_bounds are the scores at which a new ranking is first cut into stripes, kept_archives how many archives of a kind are kept where not all.';

-- Periods ----------------------------------------------------------------------------------------------------------

ALTER TABLE centile_store.periods
    DROP CONSTRAINT periods_kind_known,
    ADD COLUMN cut_off_at          timestamptz,
    ADD COLUMN archive_name        text COLLATE "C",
    ADD COLUMN archive_revision    integer NOT NULL DEFAULT 0,
    ADD COLUMN archive_players     bigint,
    ADD COLUMN archive_last_at     timestamptz,
    ADD COLUMN archive_differences bigint,
    ADD COLUMN frozen_top          bytea,
    ADD COLUMN closed_at           timestamptz,
    ADD COLUMN corrected_at        timestamptz,
    ADD COLUMN archive_dropped_at  timestamptz,
    ADD CONSTRAINT periods_kind_known CHECK (kind IN ('all_time', 'day', 'week', 'month', 'season')),
    ADD CONSTRAINT periods_season_form CHECK (kind <> 'season' OR (label ~ '^[a-z0-9][a-z0-9_-]{0,39}$' AND label <> 'previous')),
    ADD CONSTRAINT periods_season_finite CHECK (kind <> 'season' OR (isfinite(starts_at) AND isfinite(ends_at))),
    ADD CONSTRAINT periods_archive_name_key UNIQUE (archive_name),
    ADD CONSTRAINT periods_frozen_while_kept CHECK (
        (state = 'closed' AND archive_revision > 0 AND archive_dropped_at IS NULL) = (frozen_top IS NOT NULL));
COMMENT ON TABLE centile_store.periods IS
'Slices of time of a board, made when the first score falls into them (seasons: ahead). Points to its current ranking while open; closed, its archive holds the ledger up to the cut-off.';
COMMENT ON COLUMN centile_store.periods.cut_off_at IS 'When the cut-off was taken that stands: set when closing begins, and by each refresh. From then on no score enters.';
COMMENT ON COLUMN centile_store.periods.archive_last_at IS 'The latest time among the entries of the archive.';
COMMENT ON COLUMN centile_store.periods.frozen_top IS 'The first players as they stood and were called, as JSON in UTF-8.';
COMMENT ON COLUMN centile_store.periods.corrected_at IS 'When a correction or a void last fell into the period after its cut-off; a refresh after it takes it in.';

-- Apart from the periods, so that a refresh, which changes it at its begin, keeps nobody waiting who changes a period.
CREATE TABLE centile_store.cut_offs (
    period_id bigint   NOT NULL,
    batches   bigint[] NOT NULL,
    CONSTRAINT cut_offs_pkey PRIMARY KEY (period_id),
    CONSTRAINT cut_offs_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id)
);
COMMENT ON TABLE centile_store.cut_offs IS 'Number of the last batch of each lane that the archive of a period holds; archives read it.';

CREATE INDEX periods_due_idx ON centile_store.periods (ends_at) WHERE state = 'open';

ALTER TABLE centile_store.rankings
    ADD COLUMN released_at   timestamptz,
    ADD COLUMN removed_up_to bigint NOT NULL DEFAULT 0;
COMMENT ON TABLE centile_store.rankings IS
'The live standings of a period; layout is raised by every change of the stripes. Once released, nobody reads it and its rows are removed in steps: entries up to a user id first.';
CREATE INDEX rankings_released_idx ON centile_store.rankings (id) WHERE released_at IS NOT NULL;

CREATE TABLE centile_store.archive_differences (
    period_id        bigint      NOT NULL,
    revision         integer     NOT NULL,
    user_id          bigint      NOT NULL,
    archive_score    bigint,
    archive_reached_at timestamptz,
    live_score       bigint,
    live_reached_at  timestamptz,
    found_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT archive_differences_pkey PRIMARY KEY (period_id, revision, user_id),
    CONSTRAINT archive_differences_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id)
);
COMMENT ON TABLE centile_store.archive_differences IS
'Where the live ranking did not agree with the ledger when a period closed; the ledger won. The first thousand of each closing.';

-- What others are told of ------------------------------------------------------------------------------------------

CREATE TABLE centile_store.webhooks (
    board_id   integer     NOT NULL,
    url        text        NOT NULL,
    secret     bytea       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT webhooks_pkey PRIMARY KEY (board_id),
    CONSTRAINT webhooks_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT webhooks_url_form CHECK (url ~ '^https?://[^[:space:]]+$' AND octet_length(url) <= 2048),
    CONSTRAINT webhooks_secret_length CHECK (octet_length(secret) BETWEEN 16 AND 64)
);
COMMENT ON TABLE centile_store.webhooks IS 'Where the events of a board are sent, and what they are signed with.';

CREATE TABLE centile_store.outbox (
    id              bigint      GENERATED ALWAYS AS IDENTITY,
    board_id        integer     NOT NULL,
    period_id       bigint      NOT NULL,
    kind            text        NOT NULL,
    payload         jsonb       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    delivered_at    timestamptz,
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_status     integer,
    last_error      text,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_once_key UNIQUE (period_id, kind),
    CONSTRAINT outbox_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id),
    CONSTRAINT outbox_kind_known CHECK (kind IN ('period_closed'))
);
COMMENT ON TABLE centile_store.outbox IS 'Events for the outside, written with what they tell of, delivered to the board''s webhook at least once.';
-- By board: events of a board without a webhook stay undelivered for good, and are in nobody's way.
CREATE INDEX outbox_waiting_idx ON centile_store.outbox (board_id, next_attempt_at, id) WHERE delivered_at IS NULL;

CREATE TABLE centile_store.audit_log (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor       text        NOT NULL,
    action      text        NOT NULL,
    board_id    integer,
    subject     text        NOT NULL,
    before      jsonb,
    after       jsonb,
    CONSTRAINT audit_log_pkey PRIMARY KEY (id),
    CONSTRAINT audit_log_actor_length CHECK (octet_length(actor) BETWEEN 1 AND 128)
);
COMMENT ON TABLE centile_store.audit_log IS 'Who did what by an administrator''s right; append-only.';

-- Imports ----------------------------------------------------------------------------------------------------------

CREATE TABLE centile_store.imports (
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    board_id     integer     NOT NULL,
    source       text        NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at     timestamptz,
    abandoned_at timestamptz,
    CONSTRAINT imports_pkey PRIMARY KEY (id),
    CONSTRAINT imports_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id)
);
COMMENT ON TABLE centile_store.imports IS 'Imports; while one of a board has neither ended nor been abandoned, none of its periods is closed.';
CREATE INDEX imports_unended_idx ON centile_store.imports (board_id) WHERE ended_at IS NULL AND abandoned_at IS NULL;

-- Rights -----------------------------------------------------------------------------------------------------------

-- Readers have the views and the reading functions of schema centile, and the archives; the tables are not theirs.
REVOKE ALL ON ALL TABLES IN SCHEMA centile_store FROM centile_reader;
REVOKE USAGE ON SCHEMA centile_store FROM centile_reader;

GRANT USAGE ON SCHEMA centile, centile_store, centile_archive TO centile_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA centile_store TO centile_service;
-- What is append-only, and what only migrations write.
REVOKE UPDATE, DELETE ON centile_store.score_transactions, centile_store.audit_log FROM centile_service;
REVOKE INSERT, UPDATE, DELETE ON centile_store.applied_sql FROM centile_service;
-- The ledger's months are reached through the ledger; those that are made later have no rights of their own either.
DO $$
DECLARE
    v_month regclass;
BEGIN
    FOR v_month IN SELECT i.inhrelid::regclass FROM pg_inherits i WHERE i.inhparent = 'centile_store.score_transactions'::regclass LOOP
        EXECUTE format('REVOKE ALL ON %s FROM centile_service', v_month);
    END LOOP;
END
$$;
