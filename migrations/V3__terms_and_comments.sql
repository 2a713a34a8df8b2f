-- "Encrypted" replaces "sealed", as in the service and the documents. Renaming a column breaks
-- instances of the previous version; this is acceptable only because nothing is released yet.
-- The comments replace those of V1 that needed a second reading.

ALTER TABLE centile_store.webhooks RENAME COLUMN sealed TO encrypted;
COMMENT ON COLUMN centile_store.webhooks.encrypted IS
    'Whether the secret is encrypted with a master key that the database does not know.';

ALTER TABLE centile_store.api_keys
    RENAME CONSTRAINT api_keys_signing_secret_sealed TO api_keys_signing_secret_encrypted;
COMMENT ON TABLE centile_store.api_keys IS
    'API keys. Of a secret, only its SHA-256 is stored. name is the client, which has at most two '
    'active keys.';
COMMENT ON COLUMN centile_store.api_keys.signing_secret IS
    'Secret that signs the key''s requests, encrypted with a master key that the database does not '
    'know. NULL: the key does not sign.';

COMMENT ON COLUMN centile_store.users.ban_act IS
    'Number of bans and unbans that changed the player''s state: odd while the player is banned. A '
    'ban or unban stops if another one has changed it meanwhile.';
COMMENT ON TABLE centile_store.profile_revision IS
    'Raised by every transaction that changes a name or avatar in lists, so that caches notice.';
COMMENT ON TABLE centile_store.periods IS
    'Slices of time of a board. The first score in a period creates it; seasons are created in '
    'advance. An open period points to its current ranking. The archive of a closed period holds '
    'the ledger up to the cut-off.';
COMMENT ON TABLE centile_store.rankings IS
    'The live standings of a period, or standings that are being built to replace them. Every '
    'change of bounds raises layout; laid_out_at is its time. Nobody reads a released ranking. Its '
    'rows are removed in steps: entries first, in the order of user ids.';
COMMENT ON TYPE centile_store.entry_change IS
    'Change of a player''s entry in one ranking. A newcomer has no key before it; an entry that is '
    'removed has no key after it.';
COMMENT ON TABLE centile_store.batch_changes IS
    'Users whose entries a batch changed, kept for an hour. An index reloads if a batch that it '
    'has not applied has no row.';
COMMENT ON TABLE centile_store.board_players IS
    'Players who have ever been banned or reset on a board, with their current state.';
COMMENT ON TABLE centile_store.audit_log IS
    'Actions of administrators, each on a player or on the named subject. Append-only.';
COMMENT ON TABLE centile_store.named_players IS
    'Players whom the frozen top of a closed period or its event may name, as of one cut-off. A '
    'new cut-off lists them again.';
