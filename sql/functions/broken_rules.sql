-- Which events of a live batch break a rule of their board, told as their outcomes, with the limit and what it met in details. The
-- caller holds the player's lane, so that nobody else writes the player's scores meanwhile; events of one player are judged in
-- their order, and only those that are taken count for the next.
--
-- points_out_of_bounds: outside points_min to points_max.
-- too_many_events: the 60 seconds that end with the event have events_per_minute of the player's scores already. All that are in
--   the ledger count, voided ones too: they were sent.
-- gain_too_large: the event would bring the player's gain in a period that holds it past gain_max of its kind. The gain is
--   sum: what the player has won in the period; what was lost in between gives no room for more.
--   best, latest: how much better the score is than the one that the player came into the period with; of a player who had
--     none, than the first in it. A score that is no better than the player's best in the period is no gain.
--   On asc boards less is better, and won or better means less. Voided events and those before the player's last reset do not count.
CREATE FUNCTION centile_store.broken_rules(
    p_board centile_store.boards, p_users bigint[], p_points bigint[], p_at timestamptz, p_outcomes text[],
    OUT outcomes text[], OUT details text[])
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_periods  text[];
    v_limits   bigint[];
    v_starts   timestamptz[];
    v_rankings bigint[];
    v_since    timestamptz;
    v_event    record;
    v_recent   integer;
    v_first    bigint;
    v_keys     bigint[];
    v_won      numeric[];
    v_gains    numeric[];
    v_rule     text;
    v_detail   text;
BEGIN
    outcomes := p_outcomes;
    details := array_fill(NULL::text, ARRAY[cardinality(p_outcomes)]);
    IF p_board.gain_max <> '{}' THEN
        SELECT array_agg(p.period ORDER BY p.period_id), array_agg((p_board.gain_max ->> p.kind)::bigint ORDER BY p.period_id),
               array_agg(q.starts_at ORDER BY p.period_id), array_agg(p.ranking_id ORDER BY p.period_id)
        INTO v_periods, v_limits, v_starts, v_rankings
        FROM centile_store.periods_at(p_board.id, p_board.periods, p_at) p
        JOIN centile_store.periods q ON q.id = p.period_id
        WHERE p_board.gain_max ? p.kind;
        -- Nothing from before its periods tells of a sum; where best and latest scores come from lies anywhere.
        v_since := CASE p_board.mode WHEN 'sum' THEN (SELECT min(s.at) FROM unnest(v_starts) AS s (at)) ELSE '-infinity' END;
    END IF;

    -- What the ledger says of all players of the batch, in one statement: most of what it costs is to begin.
    FOR v_event IN
        WITH live AS MATERIALIZED (
            SELECT e.event, e.user_id, e.points, centile.rank_key(e.points, p_board.score_order) AS rank_key
            FROM unnest(p_users, p_points, p_outcomes) WITH ORDINALITY AS e (user_id, points, outcome, event)
            WHERE e.outcome IS NULL
        ), player AS MATERIALIZED (
            SELECT p.user_id, m.recent, a.reset_at, a.voided, s.keys, s.won
            FROM (SELECT DISTINCT user_id FROM live) p
            CROSS JOIN LATERAL (
                SELECT count(*)::integer AS recent
                FROM (SELECT FROM centile_store.score_transactions t
                      WHERE p_board.events_per_minute IS NOT NULL AND t.board_id = p_board.id AND t.user_id = p.user_id AND t.kind = 'score'
                        AND t.occurred_at > p_at - interval '60 seconds'
                      LIMIT p_board.events_per_minute) r) m
            CROSS JOIN LATERAL (
                SELECT coalesce(max(t.occurred_at) FILTER (WHERE t.kind = 'reset'), '-infinity') AS reset_at,
                       coalesce(array_agg(t.voids_id) FILTER (WHERE t.kind = 'void'), '{}') AS voided
                FROM centile_store.score_transactions t
                WHERE v_limits IS NOT NULL AND t.board_id = p_board.id AND t.user_id = p.user_id AND t.kind <> 'score'
                  AND t.occurred_at >= v_since) a
            CROSS JOIN LATERAL (
                SELECT array_agg(l.rank_key ORDER BY r.place) AS keys,
                       -- The score is what was won less what was lost; so the losses are added. Of an asc board they are what was won.
                       array_agg(CASE p_board.score_order WHEN 'desc' THEN coalesce(l.score, 0) ELSE 0 END + coalesce(n.points, 0)
                                 ORDER BY r.place) AS won
                FROM unnest(v_rankings, v_starts) WITH ORDINALITY AS r (ranking_id, starts_at, place)
                LEFT JOIN LATERAL (
                    SELECT * FROM centile_store.leaderboard l
                    WHERE l.ranking_id = r.ranking_id AND l.user_id = p.user_id LIMIT 1) l ON true
                CROSS JOIN LATERAL (
                    SELECT -sum(t.points) AS points FROM centile_store.score_transactions t
                    WHERE p_board.mode = 'sum' AND t.board_id = p_board.id AND t.user_id = p.user_id AND t.kind = 'score'
                      AND t.points < 0 AND t.occurred_at >= v_since AND t.occurred_at >= greatest(r.starts_at, a.reset_at)
                      AND t.id <> ALL (a.voided)) n) s
        )
        SELECT e.*, p.recent, p.reset_at, p.voided, p.keys, p.won,
               lag(e.user_id) OVER players IS DISTINCT FROM e.user_id AS is_first
        FROM live e JOIN player p USING (user_id)
        WINDOW players AS (ORDER BY e.user_id, e.event)
        ORDER BY e.user_id, e.event
    LOOP
        IF v_event.is_first THEN
            v_recent := v_event.recent;
            v_keys := v_event.keys;
            v_won := v_event.won;
            v_first := NULL;
        END IF;

        v_rule := NULL;
        IF v_event.points NOT BETWEEN p_board.points_min AND p_board.points_max THEN
            v_rule := 'points_out_of_bounds';
            v_detail := format('%s to %s', p_board.points_min, p_board.points_max);
        ELSIF v_recent >= p_board.events_per_minute THEN
            v_rule := 'too_many_events';
            v_detail := format('%s events in 60 seconds', p_board.events_per_minute);
        ELSIF v_limits IS NOT NULL THEN
            v_gains := v_won;
            FOR v_n IN 1 .. cardinality(v_limits) LOOP
                IF p_board.mode = 'sum' THEN
                    v_gains[v_n] := v_won[v_n] + greatest(v_event.rank_key, 0);
                    CONTINUE WHEN v_event.rank_key <= 0;
                ELSE
                    CONTINUE WHEN p_board.mode = 'best' AND v_event.rank_key <= v_keys[v_n];
                    v_gains[v_n] := v_event.rank_key::numeric - coalesce(
                        centile_store.gain_base(p_board, v_event.user_id, v_starts[v_n], v_event.reset_at, v_event.voided,
                            greatest(v_event.rank_key::numeric - v_limits[v_n], -9223372036854775807)::bigint),
                        v_first, v_event.rank_key);
                END IF;
                IF v_gains[v_n] > v_limits[v_n] THEN
                    v_rule := 'gain_too_large';
                    v_detail := format('%s in %s, not %s', v_limits[v_n], v_periods[v_n], v_gains[v_n]);
                    EXIT;
                END IF;
            END LOOP;
        END IF;

        IF v_rule IS NOT NULL THEN
            outcomes[v_event.event] := v_rule;
            details[v_event.event] := v_detail;
        ELSE
            v_recent := v_recent + 1;
            v_first := coalesce(v_first, v_event.rank_key);
            IF p_board.mode = 'sum' THEN
                v_won := v_gains;
            ELSIF v_limits IS NOT NULL THEN
                v_keys := ARRAY(SELECT greatest(k.rank_key, v_event.rank_key) FROM unnest(v_keys) WITH ORDINALITY AS k (rank_key, place) ORDER BY k.place);
            END IF;
        END IF;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.broken_rules(centile_store.boards, bigint[], bigint[], timestamptz, text[]) IS
'The outcomes of a live batch with the rule that is broken, where one is, and what was met in place of what is allowed. Example: SELECT r.* FROM centile_store.boards b CROSS JOIN LATERAL centile_store.broken_rules(b, ''{1,1}'', ''{10,5000}'', ''2024-01-17 20:00Z'', ''{NULL,NULL}'') r WHERE b.slug = ''ladder'';';
