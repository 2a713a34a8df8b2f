-- Reads the state that a batch of score events of one lane begins with: everything that the rules
-- and the fold of the service (src/rules) need, in one snapshot. It takes no lock.
-- centile_store.commit_batch takes the locks, and writes only if nothing has changed since: neither
-- the lane (batch) nor the board's structure (structure_revision), nor the server. After a failover
-- behind a pooler, the same batch number may stand for other events.
--
-- p_users: the players, each once. p_id_users and p_ids: the callers' ids, with the places of their
-- players, from 1. p_event_users and p_times: of an import, the places of the players with the
-- times of their events; NULL for live events, which all get the time at. p_known_rankings and
-- p_known_times: the layouts that the caller knows already, by ranking and by when they were made.
--
-- layout_*: the layouts of the periods' rankings, a hundred places for each; NULL if the caller knows
-- exactly these.
--
-- periods, players and known ids come as parallel arrays. Bounds that are infinite are NULL. A
-- period that accepts no events any more has no ranking.
CREATE OR REPLACE FUNCTION centile_store.begin_batch(
    p_board_id integer, p_lane smallint, p_users text[], p_id_users integer[], p_ids text[], p_event_users integer[], p_times timestamptz[],
    p_known_rankings bigint[], p_known_times timestamptz[],
    OUT board centile_store.boards, OUT batch bigint, OUT server_started_at timestamptz, OUT now timestamptz, OUT at timestamptz,
    OUT period_ids bigint[], OUT period_kinds text[], OUT period_labels text[], OUT period_starts timestamptz[], OUT period_ends timestamptz[],
    OUT period_rankings bigint[],
    OUT layout_rankings bigint[], OUT layout_times timestamptz[],
    OUT layout_buckets smallint[], OUT layout_rank_keys bigint[], OUT layout_tie_keys bigint[], OUT layout_user_keys bigint[],
    OUT user_ids bigint[], OUT are_banned boolean[], OUT are_of_lane boolean[],
    OUT entry_rankings bigint[], OUT entry_users integer[], OUT rank_keys bigint[], OUT tie_keys bigint[], OUT only_zeros boolean[],
    OUT reset_users integer[], OUT reset_times timestamptz[],
    OUT known_ids integer[], OUT known_transactions bigint[], OUT known_quarantined bigint[], OUT known_standings text[],
    OUT known_points bigint[], OUT known_tiebreaks smallint[], OUT known_reasons text[], OUT known_times timestamptz[],
    OUT known_rules text[], OUT known_details text[])
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_last_at timestamptz;
BEGIN
    SELECT * INTO STRICT board FROM centile_store.boards b WHERE b.id = p_board_id;
    SELECT l.batch, l.last_at INTO batch, v_last_at
    FROM centile_store.board_lanes l WHERE l.board_id = p_board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1;
    server_started_at := pg_postmaster_start_time();
    now := clock_timestamp();
    at := greatest(now, v_last_at);

    IF p_times IS NULL THEN
        SELECT array_agg(q.id), array_agg(q.kind), array_agg(q.label), array_agg(nullif(q.starts_at, '-infinity')), array_agg(nullif(q.ends_at, 'infinity')),
               array_agg(CASE WHEN NOT p.is_cut_off THEN p.ranking_id END)
        INTO period_ids, period_kinds, period_labels, period_starts, period_ends, period_rankings
        FROM centile_store.periods_at(p_board_id, board.periods, at) p JOIN centile_store.periods q ON q.id = p.period_id;
    ELSE
        SELECT array_agg(q.id), array_agg(q.kind), array_agg(q.label), array_agg(nullif(q.starts_at, '-infinity')), array_agg(nullif(q.ends_at, 'infinity')),
               array_agg(CASE WHEN q.cut_off_at IS NULL THEN q.ranking_id END)
        INTO period_ids, period_kinds, period_labels, period_starts, period_ends, period_rankings
        FROM centile_store.periods q
        WHERE q.id IN (SELECT p.period_id FROM (SELECT DISTINCT coalesce(t.at, begin_batch.at) AS at FROM unnest(p_times) AS t (at)) t
                       CROSS JOIN LATERAL centile_store.periods_at(p_board_id, board.periods, t.at) p);
    END IF;

    SELECT array_agg(g.id ORDER BY g.id), array_agg(g.laid_out_at ORDER BY g.id) INTO layout_rankings, layout_times
    FROM unnest(period_rankings) AS r (id)
    CROSS JOIN LATERAL (SELECT g.id, g.laid_out_at FROM centile_store.rankings g WHERE g.id = r.id LIMIT 1) g;
    IF layout_rankings = p_known_rankings AND layout_times = p_known_times THEN
        layout_rankings := NULL;
    ELSE
        SELECT array_agg(u.bucket ORDER BY g.id, u.place), array_agg(u.rank_key ORDER BY g.id, u.place),
               array_agg(u.tie_key ORDER BY g.id, u.place), array_agg(u.user_key ORDER BY g.id, u.place)
        INTO layout_buckets, layout_rank_keys, layout_tie_keys, layout_user_keys
        FROM centile_store.rankings g
        CROSS JOIN LATERAL unnest(g.buckets, g.low_rank_keys, g.low_tie_keys, g.low_user_keys) WITH ORDINALITY
            AS u (bucket, rank_key, tie_key, user_key, place)
        WHERE g.id = ANY (layout_rankings);
    END IF;

    SELECT array_agg(u.id ORDER BY p.place), array_agg(u.banned_at IS NOT NULL OR coalesce(b.banned, false) ORDER BY p.place),
           array_agg(u.lane_hash % board.lanes = p_lane ORDER BY p.place)
    INTO user_ids, are_banned, are_of_lane
    FROM unnest(p_users) WITH ORDINALITY AS p (external_id, place)
    LEFT JOIN LATERAL (SELECT * FROM centile_store.users u WHERE u.external_id = p.external_id LIMIT 1) u ON true
    LEFT JOIN LATERAL (SELECT * FROM centile_store.board_players b
                       WHERE b.board_id = p_board_id AND b.user_id = u.id LIMIT 1) b ON true;

    IF p_times IS NULL THEN
        SELECT array_agg(l.ranking_id), array_agg(u.place), array_agg(l.rank_key), array_agg(l.tie_key), array_agg(l.only_zeros)
        INTO entry_rankings, entry_users, rank_keys, tie_keys, only_zeros
        FROM unnest(user_ids) WITH ORDINALITY AS u (id, place)
        CROSS JOIN unnest(period_rankings) AS r (id)
        CROSS JOIN LATERAL (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = r.id AND l.user_id = u.id LIMIT 1) l;
    ELSE
        SELECT array_agg(l.ranking_id), array_agg(e.place), array_agg(l.rank_key), array_agg(l.tie_key), array_agg(l.only_zeros)
        INTO entry_rankings, entry_users, rank_keys, tie_keys, only_zeros
        FROM (SELECT DISTINCT e.place, r.id
              FROM unnest(p_event_users, p_times) AS e (place, at)
              JOIN unnest(period_starts, period_ends, period_rankings) AS r (starts_at, ends_at, id)
                  ON coalesce(r.starts_at <= coalesce(e.at, begin_batch.at), true)
                 AND coalesce(coalesce(e.at, begin_batch.at) < r.ends_at, true)) e
        CROSS JOIN LATERAL (SELECT * FROM centile_store.leaderboard l
                            WHERE l.ranking_id = e.id AND l.user_id = user_ids[e.place] LIMIT 1) l;
        SELECT array_agg(u.place), array_agg(t.occurred_at)
        INTO reset_users, reset_times
        FROM unnest(user_ids) WITH ORDINALITY AS u (id, place)
        JOIN centile_store.board_players b ON b.board_id = p_board_id AND b.user_id = u.id AND b.was_reset
        JOIN centile_store.score_transactions t ON t.board_id = p_board_id AND t.user_id = u.id AND t.kind = 'reset';
    END IF;

    IF p_ids <> '{}' THEN
        SELECT array_agg(i.place), array_agg(k.transaction_id), array_agg(k.quarantine_id), array_agg(s.standings),
               array_agg(coalesce(t.points, q.points)), array_agg(coalesce(t.tiebreak, q.tiebreak)), array_agg(coalesce(t.reason, q.reason)),
               array_agg(k.occurred_at), array_agg(q.rule), array_agg(q.detail)
        INTO known_ids, known_transactions, known_quarantined, known_standings,
             known_points, known_tiebreaks, known_reasons, known_times, known_rules, known_details
        FROM unnest(p_id_users, p_ids) WITH ORDINALITY AS i (user_place, id, place)
        CROSS JOIN LATERAL (SELECT * FROM centile_store.transaction_ids k
                            WHERE k.board_id = p_board_id AND k.user_id = user_ids[i.user_place] AND k.external_id = i.id LIMIT 1) k
        LEFT JOIN LATERAL (SELECT * FROM centile_store.score_transactions t
                           WHERE t.id = k.transaction_id AND t.occurred_at = k.occurred_at LIMIT 1) t ON true
        LEFT JOIN LATERAL (SELECT * FROM centile_store.quarantine q WHERE q.id = k.quarantine_id LIMIT 1) q ON true
        CROSS JOIN LATERAL (
            SELECT json_agg(json_build_object('user_id', k.user_id, 'period_id', p.id,
                       'period', CASE p.kind WHEN 'all_time' THEN p.kind ELSE p.kind || ':' || p.label END, 'score', k.standings[n + 1],
                       'was', CASE WHEN k.standings[n + 2] IS NOT NULL THEN ARRAY[k.standings[n + 2], k.standings[n + 3]] END))::text AS standings
            FROM generate_series(1, cardinality(k.standings), 4) AS n
            JOIN centile_store.periods p ON p.id = k.standings[n]) s;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.begin_batch(integer, smallint, text[], integer[], text[], integer[], timestamptz[], bigint[], timestamptz[]) IS
'What a batch of score events begins with. Example: SELECT b.batch, b.period_labels FROM centile_store.begin_batch(1, 0::smallint, ''{ann}'', ''{}'', ''{}'', NULL, NULL, ''{}'', ''{}'') b;';
