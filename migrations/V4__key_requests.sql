-- POST /v1/keys takes an Idempotency-Key. A repeated request gets the same key, whose secret is the
-- HMAC of the Idempotency-Key under a salt. Neither the secret nor the Idempotency-Key is stored.

ALTER TABLE centile_store.api_keys
    ADD COLUMN request_sha256 bytea,
    ADD COLUMN request_salt   bytea,
    ADD CONSTRAINT api_keys_request_key UNIQUE (request_sha256),
    ADD CONSTRAINT api_keys_request_complete CHECK ((request_sha256 IS NULL) = (request_salt IS NULL));
COMMENT ON COLUMN centile_store.api_keys.request_sha256 IS
    'SHA-256 of the actor and the Idempotency-Key of the request that created the key, kept for '
    'seven days.';
COMMENT ON COLUMN centile_store.api_keys.request_salt IS
    'Random salt from which, with the Idempotency-Key, the key''s secret is derived.';

-- Outbox events have the members of the API: type, name and the state of the period.
UPDATE centile_store.outbox o
SET payload = o.payload - 'event' || jsonb_build_object(
    'type', o.kind, 'period', o.payload -> 'period' || '{"state": "closed"}',
    'top', (SELECT coalesce(jsonb_agg(r.row - 'user_name' || jsonb_build_object('name', r.row -> 'user_name') ORDER BY r.place), '[]')
            FROM jsonb_array_elements(o.payload -> 'top') WITH ORDINALITY AS r (row, place)))
WHERE o.payload ? 'event';
