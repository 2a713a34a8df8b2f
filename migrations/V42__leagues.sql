-- Leagues: in each period, players of a board compete in cohorts of a limited size, and move between
-- divisions by their ranks among the members. Cohorts have no rankings of their own.

ALTER TABLE centile_store.boards ADD COLUMN has_league boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN centile_store.boards.has_league IS
    'Whether the first score of a player in a period adds the player to a league.';

CREATE TABLE centile_store.leagues (
    id         integer GENERATED ALWAYS AS IDENTITY CONSTRAINT leagues_pkey PRIMARY KEY,
    board_id   integer NOT NULL,
    name       text COLLATE "C" NOT NULL CONSTRAINT leagues_name_form CHECK (name ~ '^[a-z][a-z0-9_-]{0,39}$'),
    kind       text NOT NULL,
    size       integer NOT NULL CONSTRAINT leagues_size_range CHECK (size BETWEEN 2 AND 1000),
    divisions  text[] COLLATE "C" NOT NULL,
    promote    integer NOT NULL,
    relegate   integer NOT NULL,
    fill       text NOT NULL CONSTRAINT leagues_fill_known CHECK (fill IN ('arrival', 'form')),
    idle       text NOT NULL CONSTRAINT leagues_idle_known CHECK (idle IN ('leave', 'relegate')),
    ties       text NOT NULL CONSTRAINT leagues_ties_known CHECK (ties IN ('up', 'down')),
    created_at timestamptz NOT NULL DEFAULT now(),
    starts_at  timestamptz NOT NULL,
    next_from  timestamptz NOT NULL,
    period_id  bigint,
    closed_id  bigint,
    deleted_at timestamptz,
    CONSTRAINT leagues_divisions_form CHECK (
        cardinality(divisions) BETWEEN 1 AND 20 AND array_position(divisions, NULL) IS NULL
        AND '-' || array_to_string(divisions, '-') ~ '^(-[a-z][a-z0-9_]{0,39})+$'),
    CONSTRAINT leagues_moves_range CHECK (promote >= 0 AND relegate >= 0 AND promote::bigint + relegate <= size),
    CONSTRAINT leagues_one_division CHECK (cardinality(divisions) > 1 OR promote + relegate = 0)
);
COMMENT ON TABLE centile_store.leagues IS 'Leagues and their rules.';
COMMENT ON COLUMN centile_store.leagues.divisions IS 'Names of the divisions, lowest first. Other tables have their places, from 1.';
COMMENT ON COLUMN centile_store.leagues.starts_at IS 'Start of the first period of the league.';
COMMENT ON COLUMN centile_store.leagues.next_from IS 'Periods that begin earlier are closed, or do not belong to the league.';
COMMENT ON COLUMN centile_store.leagues.period_id IS
    'The period whose players have cohorts: the first that is not closed. NULL until it is opened.';
COMMENT ON COLUMN centile_store.leagues.closed_id IS 'The period before.';
COMMENT ON COLUMN centile_store.leagues.deleted_at IS
    'When the league was deleted. Its name is then free, and maintenance removes its rows.';
COMMENT ON CONSTRAINT leagues_name_form ON centile_store.leagues IS
    'name: must be 1 to 40 characters: lower-case letters, digits, - and _, beginning with a letter';
COMMENT ON CONSTRAINT leagues_size_range ON centile_store.leagues IS 'size: must be 2 to 1000';
COMMENT ON CONSTRAINT leagues_fill_known ON centile_store.leagues IS 'fill: must be arrival or form';
COMMENT ON CONSTRAINT leagues_idle_known ON centile_store.leagues IS 'idle: must be leave or relegate';
COMMENT ON CONSTRAINT leagues_ties_known ON centile_store.leagues IS 'ties: must be up or down';
COMMENT ON CONSTRAINT leagues_divisions_form ON centile_store.leagues IS
    'divisions: must be 1 to 20 names of up to 40 lower-case letters, digits and _, beginning with a letter';
COMMENT ON CONSTRAINT leagues_moves_range ON centile_store.leagues IS
    'promote: must be 0 or more, as relegate; together at most size';
COMMENT ON CONSTRAINT leagues_one_division ON centile_store.leagues IS
    'promote: must be 0, as relegate, with one division';
CREATE UNIQUE INDEX leagues_name_key ON centile_store.leagues (name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX leagues_board_key ON centile_store.leagues (board_id) WHERE deleted_at IS NULL;

CREATE TABLE centile_store.league_cohorts (
    id        bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT league_cohorts_pkey PRIMARY KEY,
    league_id integer  NOT NULL,
    period_id bigint   NOT NULL,
    division  smallint NOT NULL,
    band      smallint NOT NULL,
    members   integer  NOT NULL,
    is_full   boolean  NOT NULL
) WITH (fillfactor = 60);
COMMENT ON TABLE centile_store.league_cohorts IS 'Cohorts of leagues, with the number of their members.';
COMMENT ON COLUMN centile_store.league_cohorts.band IS
    'Players of similar results in the period before, with fill form; 0 for the lowest, and with fill arrival.';
CREATE INDEX league_cohorts_period_idx ON centile_store.league_cohorts (league_id, period_id);
-- Does not have the number of members, so that their updates are HOT. The newest first: dead rows of
-- cohorts that have become full under a held snapshot come after those that are open.
CREATE INDEX league_cohorts_open_idx ON centile_store.league_cohorts (league_id, period_id, division, band, id DESC) WHERE NOT is_full;

CREATE SEQUENCE centile_store.league_members_seq;
CREATE TABLE centile_store.league_members (
    league_id      integer NOT NULL,
    user_id        bigint  NOT NULL,
    period_id      bigint  NOT NULL,
    cohort_id      bigint,
    seq            bigint  NOT NULL DEFAULT nextval('centile_store.league_members_seq'),
    score          bigint,
    rank           integer,
    division       smallint,
    division_after smallint,
    CONSTRAINT league_members_pkey PRIMARY KEY (league_id, user_id, period_id)
);
COMMENT ON TABLE centile_store.league_members IS
    'Players of leagues in each period, with their results once it is closed.';
COMMENT ON COLUMN centile_store.league_members.cohort_id IS
    'NULL while the player waits for the period before to be closed, and for players without a score.';
COMMENT ON COLUMN centile_store.league_members.seq IS 'The order of arrival.';
COMMENT ON COLUMN centile_store.league_members.division IS 'NULL while the player waits.';
COMMENT ON COLUMN centile_store.league_members.division_after IS
    'The division after the period. It counts once the period is closed.';
CREATE INDEX league_members_cohort_idx ON centile_store.league_members (cohort_id) WHERE cohort_id IS NOT NULL;
CREATE INDEX league_members_waiting_idx ON centile_store.league_members (league_id, period_id, seq) WHERE division IS NULL;

-- The step that computes the results of a period may be repeated or cancelled before the period is
-- closed. So each row has the state before and after the last period in which it changed.
CREATE TABLE centile_store.league_players (
    league_id     integer  NOT NULL,
    user_id       bigint   NOT NULL,
    division      smallint NOT NULL,
    band          smallint NOT NULL,
    period_id     bigint   NOT NULL,
    next_division smallint NOT NULL,
    next_band     smallint NOT NULL,
    CONSTRAINT league_players_pkey PRIMARY KEY (league_id, user_id)
) WITH (fillfactor = 80);
COMMENT ON TABLE centile_store.league_players IS
    'Divisions of the players of leagues. A player without a row is new, in the lowest division.';
COMMENT ON COLUMN centile_store.league_players.period_id IS
    'The last period that has changed the row. If it is that of the league, division and band are current; otherwise next_division and next_band.';

GRANT SELECT, INSERT, UPDATE, DELETE ON
    centile_store.leagues, centile_store.league_cohorts, centile_store.league_members, centile_store.league_players TO centile_service;
GRANT USAGE ON SEQUENCE centile_store.league_members_seq TO centile_service;
