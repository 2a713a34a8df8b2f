-- The schema of Centile: roles, schemas, tables, types, indexes and rights. sql/README.md documents
-- its readable part. Everything in centile_store may change with any release; the functions
-- and views of schema centile are the contract.
--
-- Columns of large tables stand in an order that needs little padding.

-- Roles and schemas -------------------------------------------------------------------------------

-- centile_reader reads at psql. centile_service serves, closes and refreshes; it owns nothing.
DO $$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY '{centile_reader,centile_service}'::text[] LOOP
        BEGIN
            -- CREATE ROLE without the right to create roles fails even if the role exists.
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
            END IF;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'the role % does not exist and this user may not create it', v_role
                    USING HINT = format(
                        'As an administrator: CREATE ROLE %I NOLOGIN; then migrate again.', v_role);
        END;
    END LOOP;
END
$$;

-- JIT costs more than any statement of the service takes. This covers connections that log in as
-- the role itself.
DO $$
BEGIN
    ALTER ROLE centile_service SET jit = off;
EXCEPTION
    WHEN insufficient_privilege THEN NULL;
END
$$;

CREATE SCHEMA centile;
COMMENT ON SCHEMA centile IS 'The contract: functions and views for DBAs and for the service.';

CREATE SCHEMA centile_store;
COMMENT ON SCHEMA centile_store IS
    'The tables, and functions that only the service calls; may change with any release.';

CREATE SCHEMA centile_archive;
COMMENT ON SCHEMA centile_archive IS 'One materialized view per closed period.';

CREATE TABLE centile_store.applied_sql (
    one_row    boolean     NOT NULL DEFAULT true,
    hash       text        NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT applied_sql_pkey PRIMARY KEY (one_row),
    CONSTRAINT applied_sql_one_row CHECK (one_row)
);
COMMENT ON TABLE centile_store.applied_sql IS
    'Edition of the functions and views under sql/ that this database has.';

-- Users -------------------------------------------------------------------------------------------

CREATE TABLE centile_store.users (
    id               bigint      GENERATED ALWAYS AS IDENTITY,
    profile_revision bigint      NOT NULL DEFAULT 0,
    ban_act          bigint      NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT now(),
    banned_at        timestamptz,
    erased_at        timestamptz,
    lane_hash        integer     NOT NULL,
    external_id      text        COLLATE "C" NOT NULL,
    name             text        NOT NULL,
    avatar           text,
    metadata         jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_external_id_key UNIQUE (external_id),
    CONSTRAINT users_external_id_length CHECK (octet_length(external_id) BETWEEN 1 AND 128),
    CONSTRAINT users_name_length CHECK (octet_length(name) BETWEEN 1 AND 128),
    CONSTRAINT users_avatar_length CHECK (octet_length(avatar) <= 1024),
    CONSTRAINT users_metadata_object CHECK (jsonb_typeof(metadata) = 'object'),
    CONSTRAINT users_lane_hash_range CHECK (lane_hash BETWEEN 0 AND 65535)
);
COMMENT ON TABLE centile_store.users IS
    'Players, shared by all boards. lane_hash: the first two bytes of the SHA-256 of the external '
    'id.';
COMMENT ON COLUMN centile_store.users.ban_act IS
    'Raised to an odd number by each ban that follows an unban, and to an even one by each unban '
    'that follows a ban. An act that finds another number has been overtaken.';
COMMENT ON COLUMN centile_store.users.erased_at IS
    'When everything that identified the player was replaced. The scores remain.';

-- Profiles that never changed are not in it.
CREATE INDEX users_profile_revision_idx ON centile_store.users (profile_revision)
    WHERE profile_revision > 0;

CREATE TABLE centile_store.profile_revision (
    one_row  boolean NOT NULL DEFAULT true,
    revision bigint  NOT NULL,
    CONSTRAINT profile_revision_pkey PRIMARY KEY (one_row),
    CONSTRAINT profile_revision_one_row CHECK (one_row)
);
COMMENT ON TABLE centile_store.profile_revision IS
    'Raised by every transaction that changes what lists show of a user, so that caches notice.';
INSERT INTO centile_store.profile_revision (revision) VALUES (0);

-- Boards and lanes --------------------------------------------------------------------------------

CREATE TABLE centile_store.boards (
    id                 integer     GENERATED ALWAYS AS IDENTITY,
    slug               text        COLLATE "C" NOT NULL,
    title              text        NOT NULL,
    mode               text        NOT NULL,
    score_order        text        NOT NULL,
    ties               text        NOT NULL,
    periods            text[]      NOT NULL,
    time_zone          text        NOT NULL,
    lanes              smallint    NOT NULL,
    reading            text        NOT NULL DEFAULT 'public',
    points_min         bigint      NOT NULL,
    points_max         bigint      NOT NULL,
    events_per_minute  integer,
    gain_max           jsonb       NOT NULL DEFAULT '{}',
    on_violation       text        NOT NULL DEFAULT 'refuse',
    layout_bounds      bigint[]    NOT NULL DEFAULT '{}',
    frozen_top_size    integer     NOT NULL DEFAULT 100,
    kept_archives      jsonb       NOT NULL DEFAULT '{}',
    structure_revision bigint      NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT boards_pkey PRIMARY KEY (id),
    CONSTRAINT boards_slug_key UNIQUE (slug),
    CONSTRAINT boards_slug_form CHECK (slug ~ '^[a-z][a-z0-9_-]{0,39}$'),
    CONSTRAINT boards_title_length CHECK (octet_length(title) BETWEEN 1 AND 128),
    CONSTRAINT boards_mode_known CHECK (mode IN ('sum', 'best', 'latest')),
    CONSTRAINT boards_score_order_known CHECK (score_order IN ('desc', 'asc')),
    CONSTRAINT boards_ties_known CHECK (ties IN ('shared', 'first', 'tiebreak')),
    CONSTRAINT boards_tiebreak_needs_single_event CHECK (ties <> 'tiebreak' OR mode <> 'sum'),
    CONSTRAINT boards_periods_known CHECK (
        periods <@ '{all_time,day,week,month}' AND cardinality(periods) >= 1),
    CONSTRAINT boards_lanes_range CHECK (lanes BETWEEN 1 AND 64),
    CONSTRAINT boards_reading_known CHECK (reading IN ('public', 'key')),
    -- The least bigint has no negative, and asc boards rank by the negative.
    CONSTRAINT boards_points_range CHECK (
        points_min <= points_max AND points_min > -9223372036854775808),
    CONSTRAINT boards_events_per_minute_range CHECK (events_per_minute BETWEEN 1 AND 10000),
    CONSTRAINT boards_gain_max_kinds CHECK (
        jsonb_typeof(gain_max) = 'object' AND gain_max - (periods || '{season}'::text[]) = '{}'),
    -- Numbers in both objects are integers, and written as such: 30, not 30.0.
    CONSTRAINT boards_gain_max_positive CHECK (
        NOT jsonb_path_exists(
            gain_max, '$.* ? (!(@.type() == "number" && @ >= 1 && @ <= 9007199254740991))')
        AND position('.' IN gain_max::text) = 0),
    CONSTRAINT boards_on_violation_known CHECK (on_violation IN ('refuse', 'quarantine')),
    CONSTRAINT boards_layout_bounds_count CHECK (cardinality(layout_bounds) <= 99),
    CONSTRAINT boards_frozen_top_size_range CHECK (frozen_top_size BETWEEN 1 AND 1000),
    CONSTRAINT boards_kept_archives_kinds CHECK (
        jsonb_typeof(kept_archives) = 'object'
        AND kept_archives - '{day,week,month,season}'::text[] = '{}'),
    CONSTRAINT boards_kept_archives_positive CHECK (
        NOT jsonb_path_exists(
            kept_archives, '$.* ? (!(@.type() == "number" && @ >= 1 && @ <= 1000000))')
        AND position('.' IN kept_archives::text) = 0)
);
COMMENT ON TABLE centile_store.boards IS
    'Boards with their rules. layout_bounds: scores at which places begin in a ranking that takes '
    'no shape from an earlier period. kept_archives: number of archives to keep of each kind of '
    'period; all of a kind that is absent.';
COMMENT ON COLUMN centile_store.boards.reading IS
    'Readers of the board: everybody (public), or only callers with a key for it (key).';
COMMENT ON COLUMN centile_store.boards.events_per_minute IS
    'Most scores of one player in any 60 seconds. NULL: no limit.';
COMMENT ON COLUMN centile_store.boards.gain_max IS
    'Most that a player may gain in a period, by its kind. A kind that is absent has no limit.';
COMMENT ON COLUMN centile_store.boards.on_violation IS
    'Treatment of an event that breaks a rule: refuse it, or quarantine it until an administrator '
    'decides.';
COMMENT ON COLUMN centile_store.boards.structure_revision IS
    'Raised by every transaction that takes the structure lock exclusively.';

-- Every batch changes such a row. Changed in place, all versions that an open snapshot may still
-- need share one key, and each reader passes them all: with a dump running, reading counts went
-- from 0.1 to 2 ms within a minute. With the number of the change at the end of the key, a reader
-- that comes from the upper end meets the newest version first. There is still one row per lane;
-- each change raises its number. bucket_counts does the same.
CREATE TABLE centile_store.board_lanes (
    board_id integer     NOT NULL,
    lane     smallint    NOT NULL,
    batch    bigint      NOT NULL DEFAULT 0,
    last_at  timestamptz NOT NULL DEFAULT '2000-01-01 00:00:00+00',
    CONSTRAINT board_lanes_pkey PRIMARY KEY (board_id, lane, batch),
    CONSTRAINT board_lanes_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id)
) WITH (fillfactor = 20);
COMMENT ON TABLE centile_store.board_lanes IS
    'Number of the last batch and time of the last event of each writer lane of a board: the one '
    'row that a writer locks, found from the highest batch down.';

-- Periods and rankings ----------------------------------------------------------------------------

CREATE TABLE centile_store.periods (
    id                  bigint      GENERATED ALWAYS AS IDENTITY,
    board_id            integer     NOT NULL,
    kind                text        NOT NULL,
    label               text        NOT NULL,
    starts_at           timestamptz NOT NULL,
    ends_at             timestamptz NOT NULL,
    state               text        NOT NULL DEFAULT 'open',
    ranking_id          bigint,
    shape               bigint[],
    cut_off_at          timestamptz,
    closed_at           timestamptz,
    corrected_at        timestamptz,
    archive_name        text        COLLATE "C",
    archive_revision    integer     NOT NULL DEFAULT 0,
    archive_players     bigint,
    archive_last_at     timestamptz,
    archive_differences bigint,
    archive_dropped_at  timestamptz,
    frozen_top          bytea,
    CONSTRAINT periods_pkey PRIMARY KEY (id),
    CONSTRAINT periods_label_key UNIQUE (board_id, kind, label),
    CONSTRAINT periods_archive_name_key UNIQUE (archive_name),
    CONSTRAINT periods_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT periods_kind_known CHECK (kind IN ('all_time', 'day', 'week', 'month', 'season')),
    CONSTRAINT periods_season_form CHECK (
        kind <> 'season' OR (label ~ '^[a-z0-9][a-z0-9_-]{0,39}$' AND label <> 'previous')),
    CONSTRAINT periods_season_finite CHECK (
        kind <> 'season' OR (isfinite(starts_at) AND isfinite(ends_at))),
    CONSTRAINT periods_not_empty CHECK (starts_at < ends_at),
    CONSTRAINT periods_state_known CHECK (state IN ('open', 'closed')),
    CONSTRAINT periods_open_has_ranking CHECK ((state = 'open') = (ranking_id IS NOT NULL)),
    CONSTRAINT periods_frozen_while_kept CHECK (
        (state = 'closed' AND archive_revision > 0 AND archive_dropped_at IS NULL)
        = (frozen_top IS NOT NULL))
);
COMMENT ON TABLE centile_store.periods IS
    'Slices of time of a board, made when the first score falls into them; seasons are made ahead. '
    'An open period points to its current ranking. The archive of a closed one holds the ledger up '
    'to the cut-off.';
COMMENT ON COLUMN centile_store.periods.shape IS
    'Rank keys at which the places of the period''s last ranking began. The next period of the '
    'kind begins with these bounds.';
COMMENT ON COLUMN centile_store.periods.cut_off_at IS
    'Time of the current cut-off: set when closing begins, and by each refresh. No score enters '
    'the period after it.';
COMMENT ON COLUMN centile_store.periods.corrected_at IS
    'When a correction or a void last fell into the period after its cut-off. A later refresh '
    'includes it.';
COMMENT ON COLUMN centile_store.periods.archive_last_at IS
    'The latest time among the entries of the archive.';
COMMENT ON COLUMN centile_store.periods.frozen_top IS
    'The first players with the standings and names of that time, as JSON in UTF-8.';
CREATE INDEX periods_starts_at_idx ON centile_store.periods (board_id, kind, starts_at);
CREATE INDEX periods_due_idx ON centile_store.periods (ends_at) WHERE state = 'open';

CREATE TABLE centile_store.rankings (
    id             bigint      GENERATED ALWAYS AS IDENTITY,
    period_id      bigint      NOT NULL,
    board_id       integer     NOT NULL,
    lanes          smallint    NOT NULL,
    removed_bucket smallint    NOT NULL DEFAULT 0,
    removed_up_to  bigint      NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL DEFAULT now(),
    released_at    timestamptz,
    layout         integer     NOT NULL DEFAULT 1,
    laid_out_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- One bucket has all keys, unless something else is said.
    buckets        smallint[]  NOT NULL DEFAULT '{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,
        34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,
        67,68,69,70,71,72,73,74,75,76,77,78,79,80,81,82,83,84,85,86,87,88,89,90,91,92,93,94,95,96,97,98,99}',
    low_rank_keys  bigint[]    NOT NULL
        DEFAULT -9223372036854775808 || array_fill(9223372036854775807, ARRAY[99]),
    low_tie_keys   bigint[]    NOT NULL
        DEFAULT -9223372036854775808 || array_fill(9223372036854775807, ARRAY[99]),
    low_user_keys  bigint[]    NOT NULL
        DEFAULT -9223372036854775808 || array_fill(9223372036854775807, ARRAY[99]),
    CONSTRAINT rankings_pkey PRIMARY KEY (id),
    CONSTRAINT rankings_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id),
    CONSTRAINT rankings_hundred_places CHECK (
        cardinality(buckets) = 100 AND cardinality(low_rank_keys) = 100
        AND cardinality(low_tie_keys) = 100 AND cardinality(low_user_keys) = 100)
) WITH (fillfactor = 50);
-- Every write looks up a place, which must take neither decompression nor a TOAST table.
ALTER TABLE centile_store.rankings
    ALTER COLUMN buckets SET STORAGE PLAIN,
    ALTER COLUMN low_rank_keys SET STORAGE PLAIN,
    ALTER COLUMN low_tie_keys SET STORAGE PLAIN,
    ALTER COLUMN low_user_keys SET STORAGE PLAIN;
COMMENT ON TABLE centile_store.rankings IS
    'The live standings of a period, or those being built to replace them. Every change of bounds '
    'raises layout, and laid_out_at tells when. Nobody reads a released ranking; its rows are '
    'removed in steps, entries up to a user id first.';
COMMENT ON COLUMN centile_store.rankings.lanes IS
    'Lanes of the board, which cannot change once it has a ranking.';
COMMENT ON COLUMN centile_store.rankings.buckets IS
    'The 100 places of the ranking from low to high: the number of the bucket table at each place. '
    'Its lower bound stands in low_rank_keys, low_tie_keys and low_user_keys; numbers of the '
    'tables carry no order. A key belongs to the last place whose bound is not above it.';
COMMENT ON COLUMN centile_store.rankings.low_rank_keys IS
    'rank_key of the lower bound of each place.';
COMMENT ON COLUMN centile_store.rankings.low_tie_keys IS
    'tie_key of the lower bound of each place.';
COMMENT ON COLUMN centile_store.rankings.low_user_keys IS
    'user_key of the lower bound of each place.';
CREATE INDEX rankings_released_idx ON centile_store.rankings (id) WHERE released_at IS NOT NULL;

ALTER TABLE centile_store.periods
    ADD CONSTRAINT periods_ranking_fkey
        FOREIGN KEY (ranking_id) REFERENCES centile_store.rankings (id);

-- Not in periods: a refresh changes this row first, and must not block changes of the period.
CREATE TABLE centile_store.cut_offs (
    period_id bigint   NOT NULL,
    batches   bigint[] NOT NULL,
    CONSTRAINT cut_offs_pkey PRIMARY KEY (period_id),
    CONSTRAINT cut_offs_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id)
);
COMMENT ON TABLE centile_store.cut_offs IS
    'Number of the last batch of each lane that the archive of a period holds; archives read it.';

CREATE TABLE centile_store.archive_differences (
    period_id          bigint      NOT NULL,
    revision           integer     NOT NULL,
    user_id            bigint      NOT NULL,
    archive_score      bigint,
    archive_reached_at timestamptz,
    live_score         bigint,
    live_reached_at    timestamptz,
    found_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT archive_differences_pkey PRIMARY KEY (period_id, revision, user_id),
    CONSTRAINT archive_differences_period_fkey
        FOREIGN KEY (period_id) REFERENCES centile_store.periods (id)
);
COMMENT ON TABLE centile_store.archive_differences IS
    'Entries in which the live ranking did not agree with the ledger when a period closed; the '
    'ledger won. The first thousand of each closing.';

-- Ledger and ids ----------------------------------------------------------------------------------

-- No foreign keys: attaching a month would then wait for every writer of users and boards.
CREATE TABLE centile_store.score_transactions (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    occurred_at timestamptz NOT NULL,
    user_id     bigint      NOT NULL,
    batch       bigint      NOT NULL,
    points      bigint,
    voids_id    bigint,
    board_id    integer     NOT NULL,
    lane        smallint    NOT NULL,
    tiebreak    smallint,
    kind        text        NOT NULL DEFAULT 'score',
    reason      text,
    CONSTRAINT score_transactions_pkey PRIMARY KEY (id, occurred_at),
    CONSTRAINT score_transactions_kind_known CHECK (
        kind IN ('score', 'void', 'reset', 'ban', 'unban')),
    CONSTRAINT score_transactions_points_of_scores CHECK (
        (kind = 'score') = (points IS NOT NULL)),
    CONSTRAINT score_transactions_target_of_voids CHECK (
        (kind = 'void') = (voids_id IS NOT NULL))
) PARTITION BY RANGE (occurred_at);
COMMENT ON TABLE centile_store.score_transactions IS
    'The ledger: every act on a board, append-only, by month. Everything else can be rebuilt from '
    'it.';
CREATE INDEX score_transactions_player_idx
    ON centile_store.score_transactions (board_id, user_id, occurred_at, id);
CREATE INDEX score_transactions_acts_idx
    ON centile_store.score_transactions (board_id, user_id) WHERE kind <> 'score';

CREATE TABLE centile_store.transaction_ids (
    user_id        bigint      NOT NULL,
    lane           smallint    NOT NULL,
    board_id       integer     NOT NULL,
    transaction_id bigint,
    quarantine_id  bigint,
    occurred_at    timestamptz NOT NULL,
    expires_at     timestamptz,
    external_id    text        COLLATE "C" NOT NULL,
    standings      bigint[],
    CONSTRAINT transaction_ids_pkey PRIMARY KEY (board_id, user_id, external_id),
    CONSTRAINT transaction_ids_length CHECK (octet_length(external_id) BETWEEN 1 AND 128),
    CONSTRAINT transaction_ids_of_one CHECK (num_nonnulls(transaction_id, quarantine_id) = 1)
);
COMMENT ON TABLE centile_store.transaction_ids IS
    'Ids that callers gave to their events, kept until expires_at; ids of imports are kept '
    'forever. standings: four numbers for each period, its id, the score after the event, and rank '
    'key and tie key before it.';
COMMENT ON COLUMN centile_store.transaction_ids.lane IS 'The player''s writer lane.';
CREATE INDEX transaction_ids_expires_at_idx
    ON centile_store.transaction_ids (expires_at) WHERE expires_at IS NOT NULL;

-- Standings ---------------------------------------------------------------------------------------

-- No index on a score column and free space in each page, so that a new score is a HOT update.
CREATE TABLE centile_store.leaderboard (
    ranking_id bigint      NOT NULL,
    user_id    bigint      NOT NULL,
    score      bigint      NOT NULL,
    rank_key   bigint      NOT NULL,
    tie_key    bigint      NOT NULL,
    reached_at timestamptz NOT NULL,
    lane       smallint    NOT NULL,
    only_zeros boolean     NOT NULL,
    CONSTRAINT leaderboard_pkey PRIMARY KEY (ranking_id, user_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE centile_store.leaderboard IS
    'Entries: one player''s standing in one ranking. only_zeros: no event counts that has points '
    'other than 0.';
COMMENT ON COLUMN centile_store.leaderboard.lane IS 'The player''s writer lane.';

CREATE TABLE centile_store.leaderboard_bucket (
    bucket     smallint NOT NULL,
    lane       smallint NOT NULL,
    ranking_id bigint   NOT NULL,
    rank_key   bigint   NOT NULL,
    tie_key    bigint   NOT NULL,
    user_key   bigint   NOT NULL
) PARTITION BY LIST (bucket);
COMMENT ON TABLE centile_store.leaderboard_bucket IS
    'Keys of all entries, in 100 bucket tables: the rows that ranks are counted over. Each table '
    'has one place of every ranking.';
COMMENT ON COLUMN centile_store.leaderboard_bucket.lane IS 'The player''s writer lane.';

DO $$
DECLARE
    v_table text;
BEGIN
    FOR v_bucket IN 0..99 LOOP
        v_table := 'leaderboard_bucket_' || to_char(v_bucket, 'FM00');
        EXECUTE format(
            'CREATE TABLE centile_store.%I PARTITION OF centile_store.leaderboard_bucket
                 FOR VALUES IN (%s)', v_table, v_bucket);
        EXECUTE format(
            'ALTER TABLE centile_store.%I
                 ADD CONSTRAINT %I PRIMARY KEY (ranking_id, rank_key, tie_key, user_key)',
            v_table, v_table || '_pkey');
        -- Index-only counts need vacuumed pages: if a tenth of a bucket has been updated, a count
        -- reads 200 times the buffers.
        EXECUTE format(
            'ALTER TABLE centile_store.%I SET (
                 autovacuum_vacuum_scale_factor = 0.02,
                 autovacuum_vacuum_insert_scale_factor = 0.02)', v_table);
        EXECUTE format(
            'COMMENT ON TABLE centile_store.%I IS %L', v_table,
            format('Bucket table %s of 0 to 99: one place of every ranking.', v_bucket));
    END LOOP;
END
$$;

-- One row per lane, with the number of the change at the end of the key: see board_lanes.
CREATE TABLE centile_store.bucket_counts (
    ranking_id bigint    NOT NULL,
    lane       smallint  NOT NULL,
    revision   bigint    NOT NULL DEFAULT 1,
    counts     integer[] NOT NULL,
    CONSTRAINT bucket_counts_pkey PRIMARY KEY (ranking_id, lane, revision),
    CONSTRAINT bucket_counts_hundred CHECK (cardinality(counts) = 100)
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON TABLE centile_store.bucket_counts IS
    'Players of each of the 100 bucket tables by lane, by the number of the table: element n + 1 '
    'is bucket table n. Only sums over lanes mean anything. One row each, found from the highest '
    'revision down.';

CREATE TYPE centile_store.entry_change AS (
    ranking_id   bigint,
    user_id      bigint,
    was_rank_key bigint,
    was_tie_key  bigint,
    rank_key     bigint,
    tie_key      bigint,
    only_zeros   boolean
);
COMMENT ON TYPE centile_store.entry_change IS
    'Change of a player''s entry in one ranking: its key before (none: a newcomer) and after '
    '(none: it goes).';

-- Changes of batches ------------------------------------------------------------------------------

CREATE TABLE centile_store.batch_changes (
    board_id   integer     NOT NULL,
    lane       smallint    NOT NULL,
    batch      bigint      NOT NULL,
    user_ids   bigint[]    NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT batch_changes_pkey PRIMARY KEY (board_id, lane, batch)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    toast_tuple_target = 8160
);
-- Compressing the ids of a large batch takes longer than writing them.
ALTER TABLE centile_store.batch_changes ALTER COLUMN user_ids SET STORAGE EXTERNAL;
COMMENT ON TABLE centile_store.batch_changes IS
    'Users whose entries a batch changed, kept for an hour. A rank index that has not seen a batch '
    'without a row loads anew.';

-- Quarantine and bans -----------------------------------------------------------------------------

CREATE TABLE centile_store.quarantine (
    id             bigint      GENERATED ALWAYS AS IDENTITY,
    board_id       integer     NOT NULL,
    user_id        bigint      NOT NULL,
    points         bigint      NOT NULL,
    tiebreak       smallint,
    reason         text,
    external_id    text        COLLATE "C",
    rule           text        NOT NULL,
    detail         text        NOT NULL,
    submitted_at   timestamptz NOT NULL,
    state          text        NOT NULL DEFAULT 'waiting',
    decided_at     timestamptz,
    decided_by     text,
    decided_why    text,
    transaction_id bigint,
    CONSTRAINT quarantine_pkey PRIMARY KEY (id),
    CONSTRAINT quarantine_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT quarantine_rule_known CHECK (
        rule IN ('points_out_of_bounds', 'too_many_events', 'gain_too_large')),
    CONSTRAINT quarantine_state_known CHECK (state IN ('waiting', 'accepted', 'rejected')),
    CONSTRAINT quarantine_decided_by_somebody CHECK (
        (state = 'waiting') = (decided_at IS NULL) AND (state = 'waiting') = (decided_by IS NULL)),
    CONSTRAINT quarantine_accepted_into_ledger CHECK (
        (state = 'accepted') = (transaction_id IS NOT NULL))
);
COMMENT ON TABLE centile_store.quarantine IS
    'Events that broke a rule of their board, as submitted, with the administrator''s decision. '
    'Accepted events are in the ledger, too.';
CREATE INDEX quarantine_board_idx ON centile_store.quarantine (board_id, state, id);
CREATE INDEX quarantine_waiting_idx ON centile_store.quarantine (board_id, user_id)
    WHERE state = 'waiting';
CREATE INDEX quarantine_decided_idx ON centile_store.quarantine (decided_at)
    WHERE decided_at IS NOT NULL;

CREATE TABLE centile_store.board_players (
    board_id  integer NOT NULL,
    user_id   bigint  NOT NULL,
    banned    boolean NOT NULL DEFAULT false,
    was_reset boolean NOT NULL DEFAULT false,
    CONSTRAINT board_players_pkey PRIMARY KEY (board_id, user_id),
    CONSTRAINT board_players_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id)
);
COMMENT ON TABLE centile_store.board_players IS
    'Players who were ever banned or reset on a board, with their state after all acts of the '
    'ledger.';

-- Keys and signed requests ------------------------------------------------------------------------

CREATE TABLE centile_store.api_keys (
    id             text        COLLATE "C" NOT NULL,
    name           text        NOT NULL,
    role           text        NOT NULL,
    boards         text[]      NOT NULL DEFAULT '{}',
    secret_sha256  bytea       NOT NULL,
    signing_secret bytea,
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz,
    revoked_at     timestamptz,
    last_used_at   timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_role_known CHECK (role IN ('reader', 'server', 'admin')),
    CONSTRAINT api_keys_hash_length CHECK (octet_length(secret_sha256) = 32),
    -- Never in clear: a byte for the form, four for the master key, a nonce of 12, 32 of secret, a
    -- tag of 16.
    CONSTRAINT api_keys_signing_secret_sealed CHECK (octet_length(signing_secret) = 65)
);
COMMENT ON TABLE centile_store.api_keys IS
    'API keys: the id in clear, of the secret only its SHA-256. name is the client, which has at '
    'most two live keys.';
COMMENT ON COLUMN centile_store.api_keys.signing_secret IS
    'Secret that signs the key''s requests, sealed with a master key that the database does not '
    'know. NULL: the key does not sign.';

CREATE TABLE centile_store.signed_requests (
    key_id     text        COLLATE "C" NOT NULL,
    signature  bytea       NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT signed_requests_pkey PRIMARY KEY (key_id, signature),
    CONSTRAINT signed_requests_key_fkey FOREIGN KEY (key_id) REFERENCES centile_store.api_keys (id),
    CONSTRAINT signed_requests_signature_length CHECK (octet_length(signature) = 32)
);
COMMENT ON TABLE centile_store.signed_requests IS
    'Signatures of requests that changed something, kept until they expire. A request that repeats '
    'one is refused.';
CREATE INDEX signed_requests_expires_at_idx ON centile_store.signed_requests (expires_at);

-- Webhooks and outbox -----------------------------------------------------------------------------

CREATE TABLE centile_store.webhooks (
    board_id   integer     NOT NULL,
    url        text        NOT NULL,
    secret     bytea       NOT NULL,
    -- Not sealed where no master key is configured.
    sealed     boolean     NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT webhooks_pkey PRIMARY KEY (board_id),
    CONSTRAINT webhooks_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT webhooks_url_form CHECK (
        url ~ '^https?://[^[:space:]]+$' AND octet_length(url) <= 2048),
    CONSTRAINT webhooks_secret_length CHECK (
        octet_length(secret) - CASE WHEN sealed THEN 33 ELSE 0 END BETWEEN 16 AND 64)
);
COMMENT ON TABLE centile_store.webhooks IS
    'Addresses to which the events of boards are sent, and the secrets that sign them.';
COMMENT ON COLUMN centile_store.webhooks.sealed IS
    'Whether the secret is sealed with a master key that the database does not know.';

CREATE TABLE centile_store.outbox (
    id              bigint      GENERATED ALWAYS AS IDENTITY,
    board_id        integer     NOT NULL,
    period_id       bigint      NOT NULL,
    kind            text        NOT NULL,
    payload         jsonb       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    delivered_at    timestamptz,
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_status     integer,
    last_error      text,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_once_key UNIQUE (period_id, kind),
    CONSTRAINT outbox_period_fkey FOREIGN KEY (period_id) REFERENCES centile_store.periods (id),
    CONSTRAINT outbox_kind_known CHECK (kind IN ('period_closed'))
);
COMMENT ON TABLE centile_store.outbox IS
    'Events for webhooks, written in the transaction that they report, delivered at least once.';
-- By board: events of a board without a webhook are never delivered, and must not delay others.
CREATE INDEX outbox_waiting_idx ON centile_store.outbox (board_id, next_attempt_at, id)
    WHERE delivered_at IS NULL;

-- Audit log ---------------------------------------------------------------------------------------

-- Players by their internal id: an erasure forgets the player here, too, and the row stays.
CREATE TABLE centile_store.audit_log (
    id          bigint      GENERATED ALWAYS AS IDENTITY,
    happened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor       text        NOT NULL,
    action      text        NOT NULL,
    board_id    integer,
    user_id     bigint,
    subject     text,
    before      jsonb,
    after       jsonb,
    CONSTRAINT audit_log_pkey PRIMARY KEY (id),
    CONSTRAINT audit_log_actor_length CHECK (octet_length(actor) BETWEEN 1 AND 128),
    CONSTRAINT audit_log_of_something CHECK (num_nonnulls(subject, user_id) = 1)
);
COMMENT ON TABLE centile_store.audit_log IS
    'Acts by an administrator''s right, each on a player or on the subject that it names; '
    'append-only.';

-- Erasures ----------------------------------------------------------------------------------------

CREATE TABLE centile_store.erasures (
    user_id        bigint      NOT NULL,
    request_id     text        COLLATE "C",
    request_digest bytea,
    old_id         text,
    last_event_id  bigint      NOT NULL DEFAULT 0,
    next_period_id bigint      NOT NULL DEFAULT 0,
    began_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at        timestamptz,
    CONSTRAINT erasures_pkey PRIMARY KEY (user_id),
    CONSTRAINT erasures_request_id_key UNIQUE (request_id),
    CONSTRAINT erasures_request_id_length CHECK (octet_length(request_id) BETWEEN 1 AND 128),
    CONSTRAINT erasures_forget_when_done CHECK (done_at IS NULL OR old_id IS NULL)
);
COMMENT ON TABLE centile_store.erasures IS
    'Players who asked to be forgotten. Until done_at, tops of closed periods from next_period_id '
    'on and events up to last_event_id may still name the player by old_id, which is then deleted. '
    'Kept for a while under the id that the caller gave, with a digest of both ids.';
CREATE INDEX erasures_unfinished_idx ON centile_store.erasures (user_id) WHERE done_at IS NULL;

CREATE TABLE centile_store.named_players (
    period_id  bigint   NOT NULL,
    cut_off_at timestamptz,
    user_ids   bigint[] NOT NULL,
    CONSTRAINT named_players_pkey PRIMARY KEY (period_id)
);
COMMENT ON TABLE centile_store.named_players IS
    'Players whom the frozen top of a closed period or its event may name, as of one cut-off of '
    'the period. They are listed anew after another one.';
-- Without a pending list: every erasure would search it.
CREATE INDEX named_players_user_ids_idx ON centile_store.named_players USING gin (user_ids)
    WITH (fastupdate = off);

-- Imports -----------------------------------------------------------------------------------------

CREATE TABLE centile_store.imports (
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    board_id     integer     NOT NULL,
    source       text        NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at     timestamptz,
    abandoned_at timestamptz,
    CONSTRAINT imports_pkey PRIMARY KEY (id),
    CONSTRAINT imports_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id)
);
COMMENT ON TABLE centile_store.imports IS
    'Imports. While one of a board has neither ended nor been abandoned, none of the board''s '
    'periods is closed.';
CREATE INDEX imports_unended_idx ON centile_store.imports (board_id)
    WHERE ended_at IS NULL AND abandoned_at IS NULL;

-- Rights ------------------------------------------------------------------------------------------

-- Readers have the archives, and the views and functions of schema centile that sql/ grants them.
GRANT USAGE ON SCHEMA centile, centile_archive TO centile_reader;

GRANT USAGE ON SCHEMA centile, centile_store, centile_archive TO centile_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA centile_store TO centile_service;
-- Append-only tables, rows that never change, and a table that only migrations write. Months of
-- the ledger have no rights of their own: they are reached through the ledger.
REVOKE UPDATE, DELETE ON centile_store.score_transactions, centile_store.audit_log
    FROM centile_service;
REVOKE UPDATE ON centile_store.batch_changes FROM centile_service;
REVOKE INSERT, UPDATE, DELETE ON centile_store.applied_sql FROM centile_service;
