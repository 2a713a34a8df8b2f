-- What a batch of events does to the entries they touch: for each event and period the player's standing after it, and
-- before. Reads only. Must agree with centile.entries_from_ledger, which says the same of the whole ledger.
CREATE FUNCTION centile_store.fold_events(
    p_board centile_store.boards, p_users bigint[], p_points bigint[], p_tiebreaks smallint[], p_times timestamptz[], p_outcomes text[],
    OUT changes centile_store.entry_change[], OUT missing boolean, OUT overflows boolean, OUT outcomes text[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    -- A live batch has one time, so its periods are looked up once.
    v_one_time    boolean := coalesce(p_times[1] = ALL (p_times), true);
    v_names       text[];
    v_ranking_ids bigint[];
    v_missing     boolean;
    v_closed      integer[];
    v_event       integer;
BEGIN
    SELECT array_agg(p.period), array_agg(CASE WHEN NOT p.is_cut_off THEN p.ranking_id END), count(*) FILTER (WHERE p.kind <> 'season') < cardinality(p_board.periods)
    INTO v_names, v_ranking_ids, v_missing
    FROM centile_store.periods_at(p_board.id, p_board.periods, p_times[1]) p WHERE v_one_time;

    WITH live AS (
        SELECT e.event, e.user_id, e.points, e.at,
               centile.rank_key(e.points, p_board.score_order) AS rank_key, centile.tie_key(e.at, e.tiebreak) AS tie_key
        FROM unnest(p_users, p_points, p_tiebreaks, p_times, p_outcomes) WITH ORDINALITY
            AS e (user_id, points, tiebreak, at, outcome, event)
        WHERE e.outcome IS NULL
    ), dated AS MATERIALIZED (
        SELECT e.*, p.names, p.ranking_ids, p.missing,
               array_position(p.ranking_ids, NULL) IS NOT NULL AS closed
        FROM live e
        CROSS JOIN LATERAL (
            SELECT v_names AS names, v_ranking_ids AS ranking_ids, v_missing AS missing WHERE v_one_time
            UNION ALL
            SELECT array_agg(p.period), array_agg(CASE WHEN NOT p.is_cut_off THEN p.ranking_id END), count(*) FILTER (WHERE p.kind <> 'season') < cardinality(p_board.periods)
            FROM centile_store.periods_at(p_board.id, p_board.periods, e.at) p WHERE NOT v_one_time
            HAVING NOT v_one_time) p
    ), touched AS (
        SELECT e.event, e.user_id, e.points, e.at, p.period, p.ranking_id,
               -- Larger wins: the best event by (rank key, tie key), the latest by (time, arrival).
               CASE p_board.mode
                   WHEN 'best' THEN ARRAY[e.rank_key, e.tie_key]
                   WHEN 'latest' THEN ARRAY[-centile.tie_key(e.at), e.event, e.rank_key, e.tie_key]
               END AS candidate,
               l.score AS was_score, l.rank_key AS was_rank_key, l.tie_key AS was_tie_key,
               l.reached_at AS was_reached_at, l.only_zeros AS was_only_zeros,
               CASE WHEN l.user_id IS NOT NULL THEN
                   CASE p_board.mode
                       WHEN 'best' THEN ARRAY[l.rank_key, l.tie_key]
                       WHEN 'latest' THEN ARRAY[-centile.tie_key(l.reached_at), 0, l.rank_key, l.tie_key]
                   END
               END AS was_candidate
        FROM dated e
        CROSS JOIN LATERAL unnest(e.names, e.ranking_ids) AS p (period, ranking_id)
        -- LIMIT keeps the whole key in the index condition, whatever was known of the table when this was planned.
        LEFT JOIN LATERAL (
            SELECT * FROM centile_store.leaderboard l
            WHERE l.ranking_id = p.ranking_id AND l.user_id = e.user_id LIMIT 1) l ON true
        WHERE NOT e.missing AND NOT e.closed
    ), running AS (
        SELECT t.*,
               coalesce(was_score, 0) + sum(points) OVER w AS total,
               bool_and(points = 0) OVER w AND coalesce(was_only_zeros, true) AS only_zeros,
               max(at) FILTER (WHERE points <> 0) OVER w AS last_scored_at,
               min(at) OVER w AS first_at,
               greatest(max(candidate) OVER w, was_candidate) AS winner,
               lead(event) OVER w IS NULL AS is_last
        FROM touched t
        WINDOW w AS (PARTITION BY ranking_id, user_id ORDER BY event)
    ), standing AS (
        SELECT event, period, ranking_id, user_id, was_rank_key, was_tie_key, only_zeros, is_last, overflows,
               CASE p_board.mode
                   WHEN 'sum' THEN CASE WHEN NOT overflows THEN centile.rank_key(total::bigint, p_board.score_order) END
                   WHEN 'best' THEN winner[1]
                   ELSE winner[3]
               END AS rank_key,
               CASE p_board.mode
                   -- The latest event with points; of players with zeros only, the first.
                   WHEN 'sum' THEN centile.tie_key(CASE
                       WHEN only_zeros THEN least(was_reached_at, first_at)
                       WHEN was_only_zeros THEN last_scored_at
                       ELSE greatest(was_reached_at, last_scored_at) END)
                   WHEN 'best' THEN winner[2]
                   ELSE winner[4]
               END AS tie_key
        FROM (SELECT *, p_board.mode = 'sum' AND abs(total) > 9223372036854775807 AS overflows FROM running) r
    ), change AS (
        SELECT s.overflows, (s.event, s.period, s.ranking_id, s.user_id,
                s.was_rank_key, s.was_tie_key,
                centile.rank_key(s.rank_key, p_board.score_order), s.rank_key, s.tie_key, centile.tie_key_time(s.tie_key),
                s.only_zeros, s.is_last)::centile_store.entry_change AS change
        FROM standing s
    )
    SELECT c.changes, d.missing, c.overflows, d.closed
    INTO changes, missing, overflows, v_closed
    FROM (SELECT array_agg(c.change) AS changes, coalesce(bool_or(c.overflows), false) AS overflows FROM change c) c
    CROSS JOIN (SELECT coalesce(bool_or(d.missing), false) AS missing, array_agg(d.event) FILTER (WHERE d.closed) AS closed FROM dated d) d;

    outcomes := p_outcomes;
    FOREACH v_event IN ARRAY coalesce(v_closed, '{}') LOOP
        outcomes[v_event] := 'period_closed';
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.fold_events(centile_store.boards, bigint[], bigint[], smallint[], timestamptz[], text[]) IS
'The entries that a batch of events leads to, event by event. Example: SELECT c.event, c.period, c.score FROM centile_store.boards b CROSS JOIN LATERAL centile_store.fold_events(b, ''{1}'', ''{10}'', ''{NULL}'', ''{2024-01-17 20:00Z}'', ''{NULL}'') f CROSS JOIN LATERAL unnest(f.changes) c WHERE b.slug = ''main'';';
