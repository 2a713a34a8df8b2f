-- Metadata of score events: a JSON object of the game, such as a replay or a character.

-- Type json keeps the text as it is, so that its size is exact. jsonb would write 1e300 with all
-- 301 digits.
ALTER TABLE centile_store.quarantine
    ADD COLUMN metadata json,
    ADD CONSTRAINT quarantine_metadata_form CHECK (
        json_typeof(metadata) = 'object' AND octet_length(metadata::text) <= 1024);
COMMENT ON COLUMN centile_store.quarantine.metadata IS
    'Metadata of the event: a JSON object of at most 1,024 bytes. NULL: none.';

-- No row of the ledger has metadata yet, so there is nothing to validate.
ALTER TABLE centile_store.score_transactions
    ADD COLUMN metadata json,
    ADD CONSTRAINT score_transactions_metadata_form CHECK (
        json_typeof(metadata) = 'object' AND octet_length(metadata::text) <= 1024) NOT VALID;
COMMENT ON COLUMN centile_store.score_transactions.metadata IS
    'Metadata of a score: a JSON object of at most 1,024 bytes. NULL: none. Erasing a player '
    'removes it.';
