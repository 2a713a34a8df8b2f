-- Keys that read, boards that only keys may read, keys that sign their requests, and an audit log of every act by an administrator's right.

-- Keys -------------------------------------------------------------------------------------------------------------

ALTER TABLE centile_store.api_keys
    DROP CONSTRAINT api_keys_role_known,
    ADD CONSTRAINT api_keys_role_known CHECK (role IN ('reader', 'server', 'admin'));
COMMENT ON TABLE centile_store.api_keys IS
'API keys: the id in clear, of the secret only its SHA-256. A client, which is what the name is, has two at most that are live.';

ALTER TABLE centile_store.boards
    ADD COLUMN reading text NOT NULL DEFAULT 'public',
    ADD CONSTRAINT boards_reading_known CHECK (reading IN ('public', 'key'));
COMMENT ON COLUMN centile_store.boards.reading IS 'Who may read the board: everybody (public), or whoever has a key for it (key).';

-- The audit log ----------------------------------------------------------------------------------------------------

-- Players by their internal id: a player who asks to be forgotten is forgotten here, too, and the row stays.
ALTER TABLE centile_store.audit_log
    ALTER COLUMN subject DROP NOT NULL,
    ADD COLUMN user_id bigint;
UPDATE centile_store.audit_log a SET user_id = u.id, subject = NULL
FROM centile_store.users u WHERE a.action = 'correct' AND u.external_id = a.subject;
ALTER TABLE centile_store.audit_log
    ADD CONSTRAINT audit_log_of_something CHECK (num_nonnulls(subject, user_id) = 1);
COMMENT ON TABLE centile_store.audit_log IS
'Who did what by an administrator''s right, and to what: a player, or whatever the subject names; append-only.';

-- Players who asked to be forgotten --------------------------------------------------------------------------------

ALTER TABLE centile_store.users ADD COLUMN erased_at timestamptz;
COMMENT ON COLUMN centile_store.users.erased_at IS 'When all that told who the player was was replaced; the scores are still there.';

-- Secrets that have to be read again ---------------------------------------------------------------------------------

-- Never in clear: a byte for the form, four for the master key, a nonce of 12, 32 of secret, a tag of 16.
ALTER TABLE centile_store.api_keys
    ADD COLUMN signing_secret bytea,
    ADD CONSTRAINT api_keys_signing_secret_sealed CHECK (octet_length(signing_secret) = 65);
COMMENT ON COLUMN centile_store.api_keys.signing_secret IS
'What the key''s requests are signed with, sealed with a master key that the database does not know; NULL for a key that does not sign.';

-- In clear where no master key is configured, as all were so far.
ALTER TABLE centile_store.webhooks
    ADD COLUMN sealed boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT webhooks_secret_length,
    ADD CONSTRAINT webhooks_secret_length CHECK (octet_length(secret) - CASE WHEN sealed THEN 33 ELSE 0 END BETWEEN 16 AND 64);
COMMENT ON COLUMN centile_store.webhooks.sealed IS 'Whether the secret is sealed with a master key that the database does not know.';

CREATE TABLE centile_store.signed_requests (
    key_id     text        COLLATE "C" NOT NULL,
    signature  bytea       NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT signed_requests_pkey PRIMARY KEY (key_id, signature),
    CONSTRAINT signed_requests_key_fkey FOREIGN KEY (key_id) REFERENCES centile_store.api_keys (id),
    CONSTRAINT signed_requests_signature_length CHECK (octet_length(signature) = 32)
);
COMMENT ON TABLE centile_store.signed_requests IS
'Signatures of requests that changed something, until they are too old to be taken again: whoever sends one a second time is refused.';
CREATE INDEX signed_requests_expires_at_idx ON centile_store.signed_requests (expires_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.signed_requests TO centile_service;

-- Rules against cheating -------------------------------------------------------------------------------------------

ALTER TABLE centile_store.boards
    ADD COLUMN events_per_minute integer,
    ADD COLUMN gain_max          jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN on_violation      text  NOT NULL DEFAULT 'refuse',
    ADD CONSTRAINT boards_events_per_minute_range CHECK (events_per_minute BETWEEN 1 AND 10000),
    ADD CONSTRAINT boards_gain_max_kinds CHECK (
        jsonb_typeof(gain_max) = 'object' AND gain_max - (periods || '{season}'::text[]) = '{}'),
    ADD CONSTRAINT boards_gain_max_positive CHECK (
        NOT jsonb_path_exists(gain_max, '$.* ? (!(@.type() == "number" && @ >= 1 && @ <= 9007199254740991))')
        AND position('.' IN gain_max::text) = 0),
    ADD CONSTRAINT boards_on_violation_known CHECK (on_violation IN ('refuse', 'quarantine'));
COMMENT ON COLUMN centile_store.boards.events_per_minute IS 'Most scores of one player in any 60 seconds; NULL: any number.';
COMMENT ON COLUMN centile_store.boards.gain_max IS 'The most that a player may gain in a period, by its kind; of a kind that is absent, anything.';
COMMENT ON COLUMN centile_store.boards.on_violation IS 'What becomes of an event that breaks a rule: it is refused, or kept apart (quarantine) until an administrator decides.';

CREATE TABLE centile_store.quarantine (
    id             bigint      GENERATED ALWAYS AS IDENTITY,
    board_id       integer     NOT NULL,
    user_id        bigint      NOT NULL,
    points         bigint      NOT NULL,
    tiebreak       smallint,
    reason         text,
    external_id    text        COLLATE "C",
    rule           text        NOT NULL,
    detail         text        NOT NULL,
    submitted_at   timestamptz NOT NULL,
    state          text        NOT NULL DEFAULT 'waiting',
    decided_at     timestamptz,
    decided_by     text,
    decided_why    text,
    transaction_id bigint,
    CONSTRAINT quarantine_pkey PRIMARY KEY (id),
    CONSTRAINT quarantine_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT quarantine_rule_known CHECK (rule IN ('points_out_of_bounds', 'too_many_events', 'gain_too_large')),
    CONSTRAINT quarantine_state_known CHECK (state IN ('waiting', 'accepted', 'rejected')),
    CONSTRAINT quarantine_decided_by_somebody CHECK ((state = 'waiting') = (decided_at IS NULL) AND (state = 'waiting') = (decided_by IS NULL)),
    CONSTRAINT quarantine_accepted_into_ledger CHECK ((state = 'accepted') = (transaction_id IS NOT NULL))
);
COMMENT ON TABLE centile_store.quarantine IS
'Events that broke a rule of their board, as they were submitted, and what an administrator decided; those that were accepted are in the ledger, too.';
CREATE INDEX quarantine_board_idx ON centile_store.quarantine (board_id, state, id);
CREATE INDEX quarantine_waiting_idx ON centile_store.quarantine (board_id, user_id) WHERE state = 'waiting';
CREATE INDEX quarantine_decided_idx ON centile_store.quarantine (decided_at) WHERE decided_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.quarantine TO centile_service;
