-- Combined boards: rankings that are computed from periods of other boards.

ALTER TABLE centile_store.boards
    DROP CONSTRAINT boards_mode_known,
    ADD CONSTRAINT boards_mode_known CHECK (mode IN ('sum', 'best', 'latest', 'combined')),
    ADD CONSTRAINT boards_combined_rules CHECK (
        mode <> 'combined'
        OR (periods = '{all_time}' AND lanes = 1 AND ties <> 'tiebreak' AND snapshots IS NULL AND rolling = '{}'));

CREATE TABLE centile_store.combinations (
    board_id       integer     NOT NULL,
    join_rule      text        NOT NULL,
    aggregate      text        NOT NULL,
    refresh        text        NOT NULL DEFAULT 'manual',
    defined_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    epoch          text        NOT NULL DEFAULT '',
    as_of          timestamptz,
    sources        jsonb       NOT NULL DEFAULT '[]',
    source_batches jsonb       NOT NULL DEFAULT '{}',
    ledger_end     bigint      NOT NULL DEFAULT 0,
    ledger_start   bigint      NOT NULL DEFAULT 0,
    duration       interval,
    failures       integer     NOT NULL DEFAULT 0,
    failed_at      timestamptz,
    failure        text,
    next_view      text        COLLATE "C",
    next_as_of     timestamptz,
    next_sources   jsonb,
    next_batches   jsonb,
    next_end       bigint,
    old_views      text[]      COLLATE "C" NOT NULL DEFAULT '{}',
    CONSTRAINT combinations_pkey PRIMARY KEY (board_id),
    CONSTRAINT combinations_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT combinations_join_rule_known CHECK (join_rule IN ('union', 'intersection')),
    CONSTRAINT combinations_aggregate_known CHECK (aggregate IN ('sum', 'min', 'max')),
    CONSTRAINT combinations_refresh_form CHECK (
        octet_length(refresh) <= 128
        AND refresh ~ '^(manual|on-close|after=[1-9][0-9]{0,9}|every=[1-9][0-9]*[smh]|\S+( \S+){4})$'),
    CONSTRAINT combinations_failure_known CHECK ((failed_at IS NULL) = (failure IS NULL))
);
COMMENT ON TABLE centile_store.combinations IS
    'Definitions and states of combined boards. as_of and sources: the snapshot that the ranking was '
    'computed from. next_*: a ranking that has been built and does not answer yet.';
COMMENT ON COLUMN centile_store.combinations.epoch IS
    'Epoch of the database at as_of. A different epoch means a restore or a failover.';
COMMENT ON COLUMN centile_store.combinations.source_batches IS
    'The last batch of each lane of the source boards at as_of. Later batches hold new scores.';
COMMENT ON COLUMN centile_store.combinations.ledger_start IS
    'ledger_end of the previous refresh. Every score since as_of has a higher id.';
COMMENT ON COLUMN centile_store.combinations.old_views IS
    'Replaced views, which are dropped once no statement can read them.';

CREATE SEQUENCE centile_store.combined_view_number;
COMMENT ON SEQUENCE centile_store.combined_view_number IS
    'Numbers of the materialized views of combined boards.';

CREATE TABLE centile_store.combination_sources (
    board_id        integer  NOT NULL,
    place           smallint NOT NULL,
    source_board_id integer  NOT NULL,
    period          text     NOT NULL,
    weight          integer  NOT NULL DEFAULT 1,
    CONSTRAINT combination_sources_pkey PRIMARY KEY (board_id, place),
    CONSTRAINT combination_sources_combination_fkey
        FOREIGN KEY (board_id) REFERENCES centile_store.combinations (board_id),
    CONSTRAINT combination_sources_source_fkey
        FOREIGN KEY (source_board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT combination_sources_period_form CHECK (
        period ~ '^(all_time|(hour|day|week|month|quarter|year)(:previous|:-([1-9][0-9]?|[12][0-9]{2}|3[0-5][0-9]|36[0-6]))?|(day|week):[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])|hour:[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])|month:[0-9]{4}-(0[1-9]|1[0-2])|quarter:[0-9]{4}-Q[1-4]|year:[0-9]{4}|season:[a-z0-9][a-z0-9_-]{0,39}|snapshot:((day|week)-[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])|month-[0-9]{4}-(0[1-9]|1[0-2]))|rolling:(24h(-[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]))?|([2-9]|[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])d(-[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?))$'),
    CONSTRAINT combination_sources_weight_range CHECK (
        weight BETWEEN -1000000 AND 1000000 AND weight <> 0)
);
COMMENT ON TABLE centile_store.combination_sources IS
    'Periods of boards from which a combined board is computed, as selectors, with their weights.';

GRANT USAGE ON SEQUENCE centile_store.combined_view_number TO centile_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.combinations, centile_store.combination_sources
    TO centile_service;
