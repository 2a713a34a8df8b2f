-- Epochs: an instance that reads from a replica must know that the replica follows this primary.

CREATE TABLE centile_store.epochs (
    epoch   text        COLLATE "C" NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT epochs_pkey PRIMARY KEY (epoch)
);
COMMENT ON TABLE centile_store.epochs IS
    'The epochs in which an instance with --read-url has seen this primary. A replica with the row '
    'of the current epoch follows the current primary, and not one from before a failover.';
GRANT SELECT, INSERT ON centile_store.epochs TO centile_service;
