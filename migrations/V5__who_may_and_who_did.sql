-- Keys that read, boards that only keys may read, and an audit log of every act by an administrator's right.

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
