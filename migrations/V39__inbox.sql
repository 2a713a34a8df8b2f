-- Scores that callers of SQL write in their own transactions, until an instance has moved them to
-- the ledger.

DO $$
BEGIN
    -- CREATE ROLE without the right to create roles fails even if the role exists.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'centile_writer') THEN
        CREATE ROLE centile_writer NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role centile_writer does not exist and this user may not create it'
            USING HINT = 'As an administrator: CREATE ROLE centile_writer NOLOGIN; then migrate again.';
END
$$;
GRANT USAGE ON SCHEMA centile TO centile_writer;

CREATE TABLE centile_store.inbox (
    number       bigint      GENERATED ALWAYS AS IDENTITY,
    points       bigint      NOT NULL,
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    board_id     integer     NOT NULL,
    tiebreak     smallint,
    user_id      text        COLLATE "C" NOT NULL,
    event_id     text        COLLATE "C" NOT NULL,
    reason       text,
    metadata     json,
    submitted_by name        NOT NULL DEFAULT session_user,
    CONSTRAINT inbox_pkey PRIMARY KEY (number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
CREATE INDEX inbox_board_idx ON centile_store.inbox (board_id, number);
COMMENT ON TABLE centile_store.inbox IS
    'Events of centile.submit that are not written yet. No foreign keys: a caller takes no lock on '
    'rows that writers need.';
COMMENT ON COLUMN centile_store.inbox.event_id IS
    'The id of the event, which keeps it from being written twice; a random one if the caller gave none.';

CREATE TABLE centile_store.inbox_failures (
    number        bigint      NOT NULL,
    points        bigint      NOT NULL,
    submitted_at  timestamptz NOT NULL,
    decided_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    quarantine_id bigint,
    board_id      integer     NOT NULL,
    user_id       text        COLLATE "C" NOT NULL,
    event_id      text        COLLATE "C" NOT NULL,
    code          text        NOT NULL,
    reason        text        NOT NULL,
    submitted_by  name        NOT NULL,
    CONSTRAINT inbox_failures_pkey PRIMARY KEY (number)
);
CREATE INDEX inbox_failures_decided_at_idx ON centile_store.inbox_failures (decided_at);
CREATE INDEX inbox_failures_user_idx ON centile_store.inbox_failures (user_id);
COMMENT ON TABLE centile_store.inbox_failures IS
    'Events of centile.submit that were refused, or quarantined with the id in quarantine_id. Kept '
    'for seven days.';
COMMENT ON COLUMN centile_store.inbox_failures.code IS
    'The code of the error over HTTP.';

GRANT SELECT, INSERT, DELETE ON centile_store.inbox, centile_store.inbox_failures TO centile_service;
GRANT SELECT ON SEQUENCE centile_store.inbox_number_seq TO centile_service;
