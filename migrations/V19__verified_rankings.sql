-- Verification computes only those players from the ledger who have changed since the last one.
CREATE TABLE centile_store.verified_rankings (
    ranking_id bigint        NOT NULL,
    ledger_end bigint,
    batches    bigint[],
    times      timestamptz[],
    damaged_at timestamptz,
    CONSTRAINT verified_rankings_pkey PRIMARY KEY (ranking_id),
    CONSTRAINT verified_rankings_ranking_fkey
        FOREIGN KEY (ranking_id) REFERENCES centile_store.rankings (id) ON DELETE CASCADE
);
COMMENT ON TABLE centile_store.verified_rankings IS
    'Rankings that agreed with the ledger up to its id ledger_end when they were last verified, with '
    'the last batch and time of each lane. Without ledger_end after damage was found: the next '
    'verification reads the whole ledger.';
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.verified_rankings TO centile_service;
