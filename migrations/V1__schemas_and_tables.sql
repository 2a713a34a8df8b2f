-- The tables of Centile. What may be read of them is documented in sql/README.md; everything in centile_store may change
-- between releases, the functions and views of schema centile are the contract.

-- One role for whoever reads at psql; the service owns everything else.
DO $$
BEGIN
    CREATE ROLE centile_reader NOLOGIN;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'the role centile_reader does not exist and this user may not create it'
            USING HINT = 'As an administrator: CREATE ROLE centile_reader NOLOGIN; then migrate again.';
END
$$;

CREATE SCHEMA centile;
COMMENT ON SCHEMA centile IS 'The contract: functions and views for DBAs and for the service.';
CREATE SCHEMA centile_store;
COMMENT ON SCHEMA centile_store IS 'The tables, and functions that only the service calls; may change with any release.';
CREATE SCHEMA centile_archive;
COMMENT ON SCHEMA centile_archive IS 'One materialized view per closed period.';

GRANT USAGE ON SCHEMA centile, centile_store, centile_archive TO centile_reader;

CREATE TABLE centile_store.applied_sql (
    one_row    boolean     NOT NULL DEFAULT true,
    hash       text        NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT applied_sql_pkey PRIMARY KEY (one_row),
    CONSTRAINT applied_sql_one_row CHECK (one_row)
);
COMMENT ON TABLE centile_store.applied_sql IS 'Which edition of the functions and views under sql/ this database has.';

-- Users ------------------------------------------------------------------------------------------------------------

CREATE TABLE centile_store.users (
    id               bigint      GENERATED ALWAYS AS IDENTITY,
    external_id      text        COLLATE "C" NOT NULL,
    name             text        NOT NULL,
    avatar           text,
    metadata         jsonb       NOT NULL DEFAULT '{}',
    banned_at        timestamptz,
    lane_hash        integer     NOT NULL,
    profile_revision bigint      NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_external_id_key UNIQUE (external_id),
    CONSTRAINT users_external_id_length CHECK (octet_length(external_id) BETWEEN 1 AND 128),
    CONSTRAINT users_name_length CHECK (octet_length(name) BETWEEN 1 AND 128),
    CONSTRAINT users_avatar_length CHECK (octet_length(avatar) <= 1024),
    CONSTRAINT users_metadata_object CHECK (jsonb_typeof(metadata) = 'object'),
    CONSTRAINT users_lane_hash_range CHECK (lane_hash BETWEEN 0 AND 65535)
);
COMMENT ON TABLE centile_store.users IS 'Players, shared by all boards; lane_hash is the first two bytes of the SHA-256 of the external id.';

CREATE TABLE centile_store.profile_revision (
    one_row  boolean NOT NULL DEFAULT true,
    revision bigint  NOT NULL,
    CONSTRAINT profile_revision_pkey PRIMARY KEY (one_row),
    CONSTRAINT profile_revision_one_row CHECK (one_row)
);
COMMENT ON TABLE centile_store.profile_revision IS 'Raised in every transaction that changes what lists show of a user, so that cached lists notice.';
INSERT INTO centile_store.profile_revision (revision) VALUES (0);

-- Boards -----------------------------------------------------------------------------------------------------------

CREATE TABLE centile_store.boards (
    id            integer     GENERATED ALWAYS AS IDENTITY,
    slug          text        COLLATE "C" NOT NULL,
    title         text        NOT NULL,
    mode          text        NOT NULL,
    score_order   text        NOT NULL,
    ties          text        NOT NULL,
    periods       text[]      NOT NULL,
    lanes         smallint    NOT NULL,
    time_zone     text        NOT NULL,
    points_min    bigint      NOT NULL,
    points_max    bigint      NOT NULL,
    layout_bounds bigint[]    NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT boards_pkey PRIMARY KEY (id),
    CONSTRAINT boards_slug_key UNIQUE (slug),
    CONSTRAINT boards_slug_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,39}$'),
    CONSTRAINT boards_title_length CHECK (octet_length(title) BETWEEN 1 AND 128),
    CONSTRAINT boards_mode_known CHECK (mode IN ('sum', 'best', 'latest')),
    CONSTRAINT boards_score_order_known CHECK (score_order IN ('desc', 'asc')),
    CONSTRAINT boards_ties_known CHECK (ties IN ('shared', 'first', 'tiebreak')),
    CONSTRAINT boards_tiebreak_needs_single_event CHECK (ties <> 'tiebreak' OR mode <> 'sum'),
    CONSTRAINT boards_periods_known CHECK (periods <@ '{all_time,day,week,month}' AND cardinality(periods) >= 1),
    CONSTRAINT boards_lanes_range CHECK (lanes BETWEEN 1 AND 64),
    -- The least bigint has no negative, and asc boards rank by the negative.
    CONSTRAINT boards_points_range CHECK (points_min <= points_max AND points_min > -9223372036854775808),
    CONSTRAINT boards_layout_bounds_count CHECK (cardinality(layout_bounds) <= 99)
);
COMMENT ON TABLE centile_store.boards IS 'What is ranked, with its rules; layout_bounds are the scores at which a new ranking is first cut into stripes.';

CREATE TABLE centile_store.board_lanes (
    board_id integer     NOT NULL,
    lane     smallint    NOT NULL,
    batch    bigint      NOT NULL DEFAULT 0,
    last_at  timestamptz NOT NULL DEFAULT '2000-01-01 00:00:00+00',
    CONSTRAINT board_lanes_pkey PRIMARY KEY (board_id, lane),
    CONSTRAINT board_lanes_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id)
) WITH (fillfactor = 20);
COMMENT ON TABLE centile_store.board_lanes IS 'Per board and writer lane the number of the last batch and the time of the last event; the one row a writer locks.';

CREATE TABLE centile_store.board_players (
    board_id  integer NOT NULL,
    user_id   bigint  NOT NULL,
    banned    boolean NOT NULL DEFAULT false,
    was_reset boolean NOT NULL DEFAULT false,
    CONSTRAINT board_players_pkey PRIMARY KEY (board_id, user_id),
    CONSTRAINT board_players_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id)
);
COMMENT ON TABLE centile_store.board_players IS 'Players who were ever banned or reset on a board: what the ledger''s acts say of them now.';

-- Periods and rankings ---------------------------------------------------------------------------------------------

CREATE TABLE centile_store.periods (
    id         bigint      GENERATED ALWAYS AS IDENTITY,
    board_id   integer     NOT NULL,
    kind       text        NOT NULL,
    label      text        NOT NULL,
    starts_at  timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL,
    state      text        NOT NULL DEFAULT 'open',
    ranking_id bigint,
    CONSTRAINT periods_pkey PRIMARY KEY (id),
    CONSTRAINT periods_label_key UNIQUE (board_id, kind, label),
    CONSTRAINT periods_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT periods_kind_known CHECK (kind IN ('all_time', 'day', 'week', 'month')),
    CONSTRAINT periods_not_empty CHECK (starts_at < ends_at),
    CONSTRAINT periods_state_known CHECK (state IN ('open', 'closed')),
    CONSTRAINT periods_open_has_ranking CHECK ((state = 'open') = (ranking_id IS NOT NULL))
);
COMMENT ON TABLE centile_store.periods IS 'Slices of time of a board, made when the first score falls into them; points to its current ranking while open.';
CREATE INDEX periods_starts_at_idx ON centile_store.periods (board_id, kind, starts_at);

CREATE TABLE centile_store.rankings (
    id         bigint      GENERATED ALWAYS AS IDENTITY,
    board_id   integer     NOT NULL,
    period_id  bigint      NOT NULL,
    layout     integer     NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rankings_pkey PRIMARY KEY (id),
    CONSTRAINT rankings_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id)
) WITH (fillfactor = 50);
COMMENT ON TABLE centile_store.rankings IS 'The live standings of a period; layout is raised by every change of the stripes.';

ALTER TABLE centile_store.periods
    ADD CONSTRAINT periods_ranking_fkey FOREIGN KEY (ranking_id) REFERENCES centile_store.rankings (id);

-- The ledger -------------------------------------------------------------------------------------------------------

-- No foreign keys: attaching a month would then wait for every writer of users and boards.
CREATE TABLE centile_store.score_transactions (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    board_id    integer     NOT NULL,
    user_id     bigint      NOT NULL,
    kind        text        NOT NULL DEFAULT 'score',
    points      bigint,
    tiebreak    smallint,
    reason      text,
    voids_id    bigint,
    occurred_at timestamptz NOT NULL,
    lane        smallint    NOT NULL,
    batch       bigint      NOT NULL,
    CONSTRAINT score_transactions_pkey PRIMARY KEY (id, occurred_at),
    CONSTRAINT score_transactions_kind_known CHECK (kind IN ('score', 'void', 'reset', 'ban', 'unban')),
    CONSTRAINT score_transactions_points_of_scores CHECK ((kind = 'score') = (points IS NOT NULL)),
    CONSTRAINT score_transactions_target_of_voids CHECK ((kind = 'void') = (voids_id IS NOT NULL))
) PARTITION BY RANGE (occurred_at);
COMMENT ON TABLE centile_store.score_transactions IS 'The ledger: every act on a board, append-only, by month; the truth that everything else can be rebuilt from.';
CREATE INDEX score_transactions_player_idx ON centile_store.score_transactions (board_id, user_id, occurred_at, id);
CREATE INDEX score_transactions_acts_idx ON centile_store.score_transactions (board_id, user_id) WHERE kind <> 'score';

CREATE TABLE centile_store.transaction_ids (
    board_id     integer     NOT NULL,
    external_id  text        COLLATE "C" NOT NULL,
    content_hash bytea       NOT NULL,
    result       jsonb,
    expires_at   timestamptz,
    CONSTRAINT transaction_ids_pkey PRIMARY KEY (board_id, external_id),
    CONSTRAINT transaction_ids_length CHECK (octet_length(external_id) BETWEEN 1 AND 128)
);
COMMENT ON TABLE centile_store.transaction_ids IS 'Ids that callers gave to their events, with what was answered; kept until expires_at, from imports for ever.';
CREATE INDEX transaction_ids_expires_at_idx ON centile_store.transaction_ids (expires_at) WHERE expires_at IS NOT NULL;

-- Standings --------------------------------------------------------------------------------------------------------

-- No index on a score column and free room in each page, so that a new score is a HOT update.
CREATE TABLE centile_store.leaderboard (
    ranking_id bigint      NOT NULL,
    user_id    bigint      NOT NULL,
    score      bigint      NOT NULL,
    rank_key   bigint      NOT NULL,
    tie_key    bigint      NOT NULL,
    reached_at timestamptz NOT NULL,
    only_zeros boolean     NOT NULL,
    CONSTRAINT leaderboard_pkey PRIMARY KEY (ranking_id, user_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE centile_store.leaderboard IS 'Entries: one player''s standing in one ranking; only_zeros while no event with points other than 0 counts.';

CREATE TABLE centile_store.leaderboard_bucket (
    bucket     smallint NOT NULL,
    ranking_id bigint   NOT NULL,
    rank_key   bigint   NOT NULL,
    tie_key    bigint   NOT NULL,
    user_key   bigint   NOT NULL
) PARTITION BY LIST (bucket);
COMMENT ON TABLE centile_store.leaderboard_bucket IS 'Rank keys of all rankings, in 100 tables by score range: the rows that ranks are counted over.';

DO $$
DECLARE
    v_table text;
BEGIN
    FOR v_bucket IN 0..99 LOOP
        v_table := 'leaderboard_bucket_' || to_char(v_bucket, 'FM00');
        EXECUTE format('CREATE TABLE centile_store.%I PARTITION OF centile_store.leaderboard_bucket FOR VALUES IN (%s)', v_table, v_bucket);
        EXECUTE format('ALTER TABLE centile_store.%I ADD CONSTRAINT %I PRIMARY KEY (ranking_id, rank_key, tie_key, user_key)', v_table, v_table || '_pkey');
        -- Index-only counts need vacuumed pages: a tenth of a bucket updated costs a count 200 times the buffers.
        EXECUTE format('ALTER TABLE centile_store.%I SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)', v_table);
        EXECUTE format('COMMENT ON TABLE centile_store.%I IS %L', v_table, format('Bucket %s of 99: one of the 100 score ranges.', v_bucket));
    END LOOP;
END
$$;

CREATE TABLE centile_store.stripes (
    ranking_id bigint   NOT NULL,
    bucket     smallint NOT NULL,
    stripe     integer  NOT NULL,
    rank_key   bigint   NOT NULL,
    tie_key    bigint   NOT NULL,
    user_key   bigint   NOT NULL,
    CONSTRAINT stripes_pkey PRIMARY KEY (ranking_id, rank_key, tie_key, user_key),
    CONSTRAINT stripes_bucket_range CHECK (bucket BETWEEN 0 AND 99),
    CONSTRAINT stripes_stripe_range CHECK (stripe >= 1)
);
COMMENT ON TABLE centile_store.stripes IS 'The layout: stripe n (from 1, upwards) of a bucket begins at this rank key and ends where the next begins.';
CREATE INDEX stripes_bucket_idx ON centile_store.stripes (ranking_id, bucket, stripe);

CREATE TABLE centile_store.stripe_counts (
    ranking_id bigint    NOT NULL,
    bucket     smallint  NOT NULL,
    lane       smallint  NOT NULL,
    counts     integer[] NOT NULL,
    CONSTRAINT stripe_counts_pkey PRIMARY KEY (ranking_id, bucket, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, toast_tuple_target = 8160);
COMMENT ON TABLE centile_store.stripe_counts IS 'Players of each stripe of a bucket, by lane; only sums over lanes mean anything.';

CREATE TABLE centile_store.bucket_counts (
    ranking_id bigint   NOT NULL,
    lane       smallint NOT NULL,
    counts     bigint[] NOT NULL,
    CONSTRAINT bucket_counts_pkey PRIMARY KEY (ranking_id, lane),
    CONSTRAINT bucket_counts_hundred CHECK (cardinality(counts) = 100)
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON TABLE centile_store.bucket_counts IS 'Players of each of the 100 buckets, by lane; only sums over lanes mean anything.';

-- Keys -------------------------------------------------------------------------------------------------------------

CREATE TABLE centile_store.api_keys (
    id            text        COLLATE "C" NOT NULL,
    name          text        NOT NULL,
    role          text        NOT NULL,
    boards        text[]      NOT NULL DEFAULT '{}',
    secret_sha256 bytea       NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_role_known CHECK (role IN ('server', 'admin')),
    CONSTRAINT api_keys_hash_length CHECK (octet_length(secret_sha256) = 32)
);
COMMENT ON TABLE centile_store.api_keys IS 'API keys: the id in clear, of the secret only its SHA-256.';

-- What passes between the functions that write ---------------------------------------------------------------------

CREATE TYPE centile_store.entry_change AS (
    event        integer,
    period       text,
    ranking_id   bigint,
    user_id      bigint,
    was_rank_key bigint,
    was_tie_key  bigint,
    score        bigint,
    rank_key     bigint,
    tie_key      bigint,
    reached_at   timestamptz,
    only_zeros   boolean,
    is_last      boolean
);
COMMENT ON TYPE centile_store.entry_change IS 'What an event does to a player''s entry in one ranking; no score: the entry goes. is_last: no later event of the batch touches the entry.';

GRANT SELECT ON ALL TABLES IN SCHEMA centile_store TO centile_reader;
REVOKE SELECT ON centile_store.api_keys FROM centile_reader;
