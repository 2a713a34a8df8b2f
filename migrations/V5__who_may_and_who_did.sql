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
