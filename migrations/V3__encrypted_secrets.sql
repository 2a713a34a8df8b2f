-- One word for a secret that needs a master key: encrypted, as in the service and the documents.

ALTER TABLE centile_store.webhooks RENAME COLUMN sealed TO encrypted;
COMMENT ON COLUMN centile_store.webhooks.encrypted IS
    'Whether the secret is encrypted with a master key that the database does not know.';

ALTER TABLE centile_store.api_keys
    RENAME CONSTRAINT api_keys_signing_secret_sealed TO api_keys_signing_secret_encrypted;
COMMENT ON COLUMN centile_store.api_keys.signing_secret IS
    'Secret that signs the key''s requests, encrypted with a master key that the database does not '
    'know. NULL: the key does not sign.';
