-- The service decides score events. Its reads still hold if neither the lane nor the structure has
-- changed. Ids belong to one player, and point to the ledger, which has the content
-- of the event.

ALTER TABLE centile_store.boards ADD COLUMN structure_revision bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN centile_store.boards.structure_revision IS 'Raised by every transaction that takes the structure lock exclusively.';

CREATE TABLE centile_store.ids_of_events (
    board_id       integer     NOT NULL,
    user_id        bigint      NOT NULL,
    external_id    text        COLLATE "C" NOT NULL,
    transaction_id bigint,
    quarantine_id  bigint,
    occurred_at    timestamptz NOT NULL,
    expires_at     timestamptz,
    standings      bigint[]
);
INSERT INTO centile_store.ids_of_events (board_id, user_id, external_id, transaction_id, occurred_at, expires_at)
SELECT i.board_id, t.user_id, i.external_id, t.id, t.occurred_at, i.expires_at
FROM centile_store.transaction_ids i
JOIN centile_store.score_transactions t
    ON t.id = (i.result ->> 'transaction_id')::bigint AND t.occurred_at = (i.result ->> 'occurred_at')::timestamptz;
INSERT INTO centile_store.ids_of_events (board_id, user_id, external_id, quarantine_id, occurred_at, expires_at)
SELECT i.board_id, q.user_id, i.external_id, q.id, q.submitted_at, i.expires_at
FROM centile_store.transaction_ids i
JOIN centile_store.quarantine q ON q.id = (i.result ->> 'quarantine_id')::bigint;
DROP TABLE centile_store.transaction_ids;
ALTER TABLE centile_store.ids_of_events RENAME TO transaction_ids;
ALTER TABLE centile_store.transaction_ids
    ADD CONSTRAINT transaction_ids_pkey PRIMARY KEY (board_id, user_id, external_id),
    ADD CONSTRAINT transaction_ids_length CHECK (octet_length(external_id) BETWEEN 1 AND 128),
    ADD CONSTRAINT transaction_ids_of_one CHECK (num_nonnulls(transaction_id, quarantine_id) = 1);
CREATE INDEX transaction_ids_expires_at_idx ON centile_store.transaction_ids (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON TABLE centile_store.transaction_ids IS
'Ids that callers gave to their events, kept until expires_at, from imports for ever. standings: four numbers for each period, its id, the score after the event, and rank key and tie key before it.';
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.transaction_ids TO centile_service;
