-- One row per player and board holds the player's standings in all periods that are not closed. It
-- replaces a row for each ranking.
CREATE TABLE centile_store.players (
    board_id     integer  NOT NULL,
    lane         smallint NOT NULL,
    banned       boolean  NOT NULL DEFAULT false,
    was_reset    boolean  NOT NULL DEFAULT false,
    user_id      bigint   NOT NULL,
    batch        bigint   NOT NULL DEFAULT 0,
    period_ids   bigint[] NOT NULL DEFAULT '{}',
    rank_keys    bigint[] NOT NULL DEFAULT '{}',
    tie_keys     bigint[] NOT NULL DEFAULT '{}',
    zero_periods bigint[],
    -- No index on a standing, and free space in each page, so that a new score is a HOT update.
    CONSTRAINT players_pkey PRIMARY KEY (board_id, user_id),
    CONSTRAINT players_board_fkey FOREIGN KEY (board_id) REFERENCES centile_store.boards (id),
    CONSTRAINT players_keys_of_periods CHECK (
        cardinality(rank_keys) = cardinality(period_ids) AND cardinality(tie_keys) = cardinality(period_ids)
    )
) WITH (fillfactor = 80);
COMMENT ON TABLE centile_store.players IS
    'Players of a board: bans, resets, and the standings in whole periods that are not closed. A '
    'segment has the standings of its whole period. See the view leaderboard.';
COMMENT ON COLUMN centile_store.players.lane IS 'The player''s writer lane.';
COMMENT ON COLUMN centile_store.players.batch IS 'The batch of the lane that last changed the standings.';
COMMENT ON COLUMN centile_store.players.period_ids IS
    'The whole period of each standing. Standings in closed periods remain until the next score.';
COMMENT ON COLUMN centile_store.players.zero_periods IS
    'Periods in which all counted events have 0 points. A score other than 0 then marks a sum that '
    'stopped at its limit of 64 bits.';
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.players TO centile_service;

LOCK TABLE centile_store.leaderboard, centile_store.board_players IN EXCLUSIVE MODE;
-- If a whole period is closed, its standings exist only in the rows of segments that are still open.
INSERT INTO centile_store.players (board_id, lane, banned, was_reset, user_id, batch, period_ids, rank_keys, tie_keys, zero_periods)
SELECT b.id, u.lane_hash % b.lanes, coalesce(o.banned, false), coalesce(o.was_reset, false), u.id,
       (SELECT max(l.batch) FROM centile_store.board_lanes l WHERE l.board_id = b.id AND l.lane = u.lane_hash % b.lanes),
       coalesce(e.period_ids, '{}'), coalesce(e.rank_keys, '{}'), coalesce(e.tie_keys, '{}'), e.zero_periods
FROM (SELECT x.board_id, x.user_id, array_agg(x.id ORDER BY x.id) AS period_ids, array_agg(x.rank_key ORDER BY x.id) AS rank_keys,
             array_agg(x.tie_key ORDER BY x.id) AS tie_keys, array_agg(x.id) FILTER (WHERE x.only_zeros) AS zero_periods
      FROM (SELECT DISTINCT ON (w.id, l.user_id) w.id, w.board_id, l.user_id, l.rank_key, l.tie_key, l.only_zeros
            FROM centile_store.periods p
            JOIN centile_store.periods w ON w.board_id = p.board_id AND w.kind = p.kind AND w.label = p.label AND w.segment = ''
            JOIN centile_store.leaderboard l ON l.ranking_id = p.ranking_id
            WHERE p.segment = '' OR w.ranking_id IS NULL
            ORDER BY w.id, l.user_id) x
      GROUP BY x.board_id, x.user_id) e
FULL JOIN centile_store.board_players o ON o.board_id = e.board_id AND o.user_id = e.user_id
JOIN centile_store.boards b ON b.id = coalesce(e.board_id, o.board_id)
JOIN centile_store.users u ON u.id = coalesce(e.user_id, o.user_id);

-- Redefines the views on the old tables as empty, with the same columns, so that views of users on
-- them stay. The files under sql/ replace them after the migrations.
DO $$
DECLARE
    v_view record;
BEGIN
    FOR v_view IN
        SELECT c.oid::regclass AS name, string_agg(format('NULL::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname), ', ' ORDER BY a.attnum) AS columns
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relkind = 'v' AND c.relnamespace = 'centile'::regnamespace
          AND c.oid IN (SELECT r.ev_class FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
                        WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid IN ('centile_store.leaderboard'::regclass, 'centile_store.board_players'::regclass))
        GROUP BY c.oid
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW %s AS SELECT %s WHERE false', v_view.name, v_view.columns);
    END LOOP;
END
$$;
DROP TABLE centile_store.leaderboard;
DROP TABLE centile_store.board_players;

CREATE TABLE centile_store.fillings (
    board_id        integer  NOT NULL,
    ranking_id      bigint   NOT NULL,
    lane            smallint NOT NULL,
    standings_up_to bigint   NOT NULL,
    rows_up_to      bigint   NOT NULL DEFAULT 0,
    batch           bigint   NOT NULL DEFAULT 0,
    CONSTRAINT fillings_pkey PRIMARY KEY (board_id, ranking_id, lane)
) WITH (fillfactor = 50);
COMMENT ON TABLE centile_store.fillings IS
    'Progress of rankings that are being built, by lane: the last user id with standings (in a '
    'rolling window), and the last with bucket rows.';
COMMENT ON COLUMN centile_store.fillings.batch IS 'The batch of the lane that the bucket rows contain.';
GRANT SELECT, INSERT, UPDATE, DELETE ON centile_store.fillings TO centile_service;

CREATE INDEX players_banned_idx ON centile_store.players (user_id, board_id) WHERE banned;
CREATE INDEX periods_live_idx ON centile_store.periods (board_id) WHERE segment = '' AND state <> 'closed';

-- A released ranking has no entries of its own to remove.
ALTER TABLE centile_store.rankings DROP COLUMN removed_up_to;

CREATE TYPE centile_store.player_state AS (
    user_id bigint, is_banned boolean, is_of_lane boolean,
    period_ids bigint[], rank_keys bigint[], tie_keys bigint[], zero_periods bigint[]
);
COMMENT ON TYPE centile_store.player_state IS 'A player as begin_batch returns it. user_id is NULL for an unknown user.';
CREATE TYPE centile_store.player_standings AS (
    user_id bigint, period_ids bigint[], rank_keys bigint[], tie_keys bigint[], zero_periods bigint[]
);
COMMENT ON TYPE centile_store.player_standings IS 'All standings of a player on a board, as in centile_store.players.';
CREATE TYPE centile_store.logged_entries AS (
    ranking_ids bigint[], user_ids bigint[], was_rank_keys bigint[], was_tie_keys bigint[], rank_keys bigint[], tie_keys bigint[]
);
COMMENT ON TYPE centile_store.logged_entries IS 'Changed entries as columns of centile_store.batch_log.';
