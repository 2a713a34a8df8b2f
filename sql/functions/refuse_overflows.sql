-- Marks the events whose sum no bigint can hold. Only users whose points could get there are looked at one by one: the
-- scores of all open periods that hold the event, since an event counts in all of them or in none.
CREATE FUNCTION centile_store.refuse_overflows(
    p_board centile_store.boards, p_users bigint[], p_points bigint[], p_times timestamptz[], p_outcomes text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_limit constant numeric := 9223372036854775807;
    v_event  record;
    v_totals jsonb := '{}';
    v_sums   jsonb;
    v_fits   boolean;
BEGIN
    IF p_board.mode <> 'sum' THEN
        RETURN p_outcomes;
    END IF;
    FOR v_event IN
        WITH live AS (
            SELECT * FROM unnest(p_users, p_points, p_times, p_outcomes) WITH ORDINALITY AS e (user_id, points, at, outcome, event)
            WHERE e.outcome IS NULL
        ), gain AS (
            SELECT user_id, sum(abs(points::numeric)) AS points FROM live GROUP BY user_id
        ), risky AS (
            SELECT g.user_id FROM gain g
            WHERE g.points + coalesce((
                SELECT max(abs(l.score::numeric)) FROM centile_store.leaderboard l
                WHERE l.user_id = g.user_id AND l.ranking_id = ANY (ARRAY(
                    SELECT p.ranking_id FROM (SELECT DISTINCT at FROM live) t
                    CROSS JOIN LATERAL centile_store.periods_at(p_board.id, p_board.periods, t.at) p))), 0) > v_limit
        )
        SELECT live.* FROM live JOIN risky USING (user_id) ORDER BY live.event
    LOOP
        SELECT coalesce(jsonb_object_agg(s.name, s.total), '{}'), coalesce(bool_and(abs(s.total) <= v_limit), true)
        INTO v_sums, v_fits
        FROM (SELECT n.name, coalesce((v_totals ->> n.name)::numeric, l.score, 0) + v_event.points AS total
              FROM centile_store.periods_at(p_board.id, p_board.periods, v_event.at) p
              CROSS JOIN LATERAL (SELECT p.ranking_id || ':' || v_event.user_id AS name) n
              LEFT JOIN centile_store.leaderboard l ON l.ranking_id = p.ranking_id AND l.user_id = v_event.user_id
              WHERE p.ranking_id IS NOT NULL
                -- Before a reset of the player an imported event does not count.
                AND NOT EXISTS (
                    SELECT FROM centile_store.periods q
                    JOIN centile_store.score_transactions a
                        ON a.board_id = p_board.id AND a.user_id = v_event.user_id AND a.kind = 'reset'
                       AND a.occurred_at > v_event.at AND a.occurred_at < q.ends_at
                    WHERE q.ranking_id = p.ranking_id)) s;
        IF v_fits THEN
            v_totals := v_totals || v_sums;
        ELSE
            p_outcomes[v_event.event] := 'overflow';
        END IF;
    END LOOP;
    RETURN p_outcomes;
END
$$;

COMMENT ON FUNCTION centile_store.refuse_overflows(centile_store.boards, bigint[], bigint[], timestamptz[], text[]) IS
'The outcomes of a batch with ''overflow'' set where a sum would leave the range of bigint. Example: SELECT centile_store.refuse_overflows(b, ''{1}'', ''{9223372036854775807}'', ''{2024-01-15 12:00Z}'', ''{NULL}'') FROM centile_store.boards b WHERE b.slug = ''main'';';
