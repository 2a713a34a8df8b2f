-- Reads in one snapshot, without locks, the state that the rules of the service (src/rules) need
-- for a batch. commit_batch writes only if lane, structure and server are then the same.
-- p_boards, p_users: board and name of each player. A template's batch has players of its boards.
-- p_id_users, p_ids: the callers' ids with the places of their players in p_users, from 1.
-- p_event_users, p_times: likewise of an import; NULL for live events, which get the time "at".
-- A period that accepts no more events has no ranking. period_fillings: per period, the user id up to
-- which a window is filled; NULL for other periods, and as a whole if no window is being filled.
-- live_periods: the periods whose standings must be kept. valid_until: board, periods and
-- live_periods hold until then, at most a day, unless the structure changes; NULL if they depend on
-- this batch or a window is being filled. unapplied_seconds: the age of the oldest batch of the lane
-- that is not applied. member_*, segment_*: see segment_state. tie_*: see deciding_times.
CREATE OR REPLACE FUNCTION centile_store.begin_batch(
    p_board_id integer, p_lane smallint, p_boards integer[], p_users text[], p_id_users integer[], p_ids text[], p_event_users integer[], p_times timestamptz[],
    OUT board centile_store.boards, OUT batch bigint, OUT server_started_at timestamptz, OUT now timestamptz, OUT at timestamptz, OUT unapplied_seconds double precision,
    OUT period_ids bigint[], OUT period_kinds text[], OUT period_labels text[], OUT period_starts timestamptz[], OUT period_ends timestamptz[],
    OUT period_rankings bigint[], OUT period_fillings bigint[], OUT live_periods bigint[], OUT valid_until timestamptz, OUT players centile_store.player_state[], OUT reset_users integer[], OUT reset_times timestamptz[],
    OUT known_ids integer[], OUT known_transactions bigint[], OUT known_quarantined bigint[], OUT known_standings text[], OUT known_points bigint[], OUT known_tiebreaks bigint[], OUT known_reasons text[], OUT known_times timestamptz[], OUT known_rules text[], OUT known_details text[], OUT known_metadata text[], OUT member_users integer[], OUT member_segments text[], OUT member_times timestamptz[], OUT member_are_in boolean[], OUT member_are_new boolean[],
    OUT segment_periods bigint[], OUT segment_names text[], OUT segment_rankings bigint[], OUT tie_users integer[], OUT tie_periods bigint[], OUT tie_times timestamptz[])
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_last_at timestamptz;
    v_users   bigint[];
BEGIN
    SELECT * INTO STRICT board FROM centile_store.boards b WHERE b.id = p_board_id;
    SELECT l.batch, l.last_at INTO batch, v_last_at FROM centile_store.board_lanes l WHERE l.board_id = p_board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1;
    unapplied_seconds := (SELECT extract(epoch FROM pg_catalog.now() - c.written_at) FROM centile_store.batch_log c
        WHERE c.board_id = p_board_id AND c.lane = p_lane AND c.batch > coalesce((
            SELECT a.batch FROM centile_store.applied a WHERE a.board_id = p_board_id AND a.lane = p_lane ORDER BY a.batch DESC LIMIT 1), 0)
        ORDER BY c.batch LIMIT 1);
    server_started_at := pg_postmaster_start_time();
    now := clock_timestamp();
    at := CASE WHEN p_times IS NULL AND v_last_at > now + interval '5 seconds' THEN centile_store.time_of_cut_off(p_board_id, v_last_at) ELSE greatest(now, v_last_at) END;
    IF p_times IS NULL THEN
        SELECT array_agg(q.id), array_agg(q.kind), array_agg(q.label), array_agg(nullif(q.starts_at, '-infinity')), array_agg(nullif(q.ends_at, 'infinity')), array_agg(CASE WHEN NOT p.is_cut_off THEN p.ranking_id END)
        INTO period_ids, period_kinds, period_labels, period_starts, period_ends, period_rankings
        FROM centile_store.periods_at(p_board_id, board.periods, at) p JOIN centile_store.periods q ON q.id = p.period_id;
    ELSE
        SELECT * INTO period_ids, period_kinds, period_labels, period_starts, period_ends, period_rankings
        FROM centile_store.import_periods(p_board_id, board.periods, p_times, at);
    END IF;
    SELECT coalesce(array_agg(q.id), '{}'), CASE WHEN p_times IS NULL AND board.segments = '{}' THEN
        least(at + interval '1 day', min(q.starts_at) FILTER (WHERE q.starts_at > at), min(q.ends_at) FILTER (WHERE q.ends_at > at)) END INTO live_periods, valid_until
    FROM centile_store.periods q WHERE q.board_id = p_board_id AND q.segment = '' AND q.state <> 'closed';
    IF EXISTS (SELECT FROM centile_store.fillings f WHERE f.board_id = p_board_id) THEN
        valid_until := NULL;
        SELECT period_ids || array_agg(w.period_id), period_kinds || array_agg('rolling'::text), period_labels || array_agg(w.label), period_starts || array_agg(w.starts_at),
               period_ends || array_agg(w.ends_at), period_rankings || array_agg(w.ranking_id),
               array_fill(NULL::bigint, ARRAY[coalesce(cardinality(period_ids), 0)]) || array_agg(w.standings_up_to)
        INTO period_ids, period_kinds, period_labels, period_starts, period_ends, period_rankings, period_fillings
        FROM centile_store.filling_windows(p_board_id, p_lane) w;
    END IF;
    SELECT array_agg((p.player).user_id ORDER BY p.place), array_agg(p.player ORDER BY p.place) INTO v_users, players
    FROM centile_store.batch_players(p_board_id, p_lane, p_boards, p_users) p;
    IF board.segments <> '{}' THEN
        live_periods := live_periods || centile_store.open_segment_periods(ARRAY(
            SELECT DISTINCT x FROM unnest(players) AS p CROSS JOIN unnest(p.period_ids) AS x WHERE x <> ALL (live_periods)));
        SELECT * INTO member_users, member_segments, member_times, member_are_in, member_are_new, segment_periods, segment_names, segment_rankings
        FROM centile_store.segment_state(board, v_users, p_event_users, p_times, at, period_ids);
    END IF;
    IF p_times IS NOT NULL AND board.ties = 'second' THEN
        SELECT * INTO tie_users, tie_periods, tie_times FROM centile_store.deciding_times(board, p_boards, v_users, period_ids);
    END IF;
    IF p_times IS NOT NULL THEN
        SELECT array_agg(u.place), array_agg(t.occurred_at) INTO reset_users, reset_times FROM unnest(v_users) WITH ORDINALITY AS u (id, place)
        JOIN centile_store.players b ON b.board_id = p_boards[u.place] AND b.user_id = u.id AND b.was_reset
        JOIN centile_store.score_transactions t ON t.board_id = b.board_id AND t.user_id = u.id AND t.kind = 'reset';
    END IF;
    IF p_ids <> '{}' THEN
        SELECT * INTO known_ids, known_transactions, known_quarantined, known_standings, known_points, known_tiebreaks, known_reasons, known_times, known_rules, known_details, known_metadata
        FROM centile_store.known_events(p_boards, v_users, p_id_users, p_ids);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.begin_batch(integer, smallint, integer[], text[], integer[], text[], integer[], timestamptz[]) IS
'State of the board that a batch of score events starts from. Example: SELECT b.batch, b.period_labels FROM centile_store.begin_batch(1, 0::smallint, ''{1}'', ''{ann}'', ''{}'', ''{}'', NULL, NULL) b;';
