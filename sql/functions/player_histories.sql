-- A row for each player of a batch, in their order. p_boards: the players' boards. p_best_keys: the players' best keys in the
-- batch. p_period_ids, p_limits: the periods whose kind has a limit of gains.
--
-- recent: scores in the 60 seconds that end at p_at, voided ones included, up to the board's limit.
-- waiting: events in quarantine. won, on sum boards: the player's gain in each period, which is the
-- score without the losses. bases, on other boards: the rank key from which the gain counts
-- (centile_store.gain_base). On asc boards won or better means less. Voided events and those before
-- the player's last reset do not count.
CREATE OR REPLACE FUNCTION centile_store.player_histories(
    p_board_id integer, p_boards integer[], p_users bigint[], p_best_keys bigint[], p_period_ids bigint[], p_limits bigint[], p_at timestamptz)
RETURNS TABLE (recent integer, waiting integer, won text[], bases bigint[])
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_board    centile_store.boards;
    v_starts   timestamptz[];
    v_since    timestamptz;
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    SELECT array_agg(q.starts_at ORDER BY p.place) INTO v_starts
    FROM unnest(p_period_ids) WITH ORDINALITY AS p (id, place) JOIN centile_store.periods q ON q.id = p.id;
    -- Sums need only events of their periods. Best and latest scores may come from any time.
    v_since := CASE v_board.mode WHEN 'sum' THEN (SELECT min(s.at) FROM unnest(v_starts) AS s (at)) ELSE '-infinity' END;
    RETURN QUERY
    SELECT m.recent, w.waiting, g.won, g.bases
    FROM unnest(p_boards, p_users, p_best_keys) WITH ORDINALITY AS p (board_id, user_id, best_key, place)
    CROSS JOIN LATERAL (
        SELECT count(*)::integer AS recent
        FROM (SELECT FROM centile_store.score_transactions t
              WHERE v_board.events_per_minute IS NOT NULL AND t.board_id = p.board_id AND t.user_id = p.user_id AND t.kind = 'score'
                AND t.occurred_at > p_at - interval '60 seconds'
              LIMIT v_board.events_per_minute) r) m
    CROSS JOIN LATERAL (
        SELECT count(*)::integer AS waiting FROM centile_store.quarantine q
        WHERE v_board.on_violation = 'quarantine' AND q.board_id = p.board_id AND q.user_id = p.user_id AND q.state = 'waiting') w
    CROSS JOIN LATERAL (
        SELECT coalesce(max(t.occurred_at) FILTER (WHERE t.kind = 'reset'), '-infinity') AS reset_at,
               coalesce(array_agg(t.voids_id) FILTER (WHERE t.kind = 'void'), '{}') AS voided
        FROM centile_store.score_transactions t
        WHERE v_starts IS NOT NULL AND t.board_id = p.board_id AND t.user_id = p.user_id AND t.kind <> 'score' AND t.occurred_at >= v_since) a
    CROSS JOIN LATERAL (
        SELECT array_agg((CASE v_board.score_order WHEN 'desc' THEN coalesce(l.score, 0) ELSE 0 END + coalesce(n.points, 0))::text ORDER BY r.place) AS won,
               array_agg(CASE WHEN v_board.mode <> 'sum' AND p.user_id IS NOT NULL THEN
                   centile_store.gain_base(v_board, p.board_id, p.user_id, r.starts_at, a.reset_at, a.voided,
                       greatest(p.best_key::numeric - r.gain_max, centile_store.key_min() + 1)::bigint) END ORDER BY r.place) AS bases
        FROM unnest(p_period_ids, v_starts, p_limits) WITH ORDINALITY AS r (period_id, starts_at, gain_max, place)
        LEFT JOIN LATERAL (
            SELECT centile.rank_key(x.rank_keys[array_position(x.period_ids, r.period_id)], v_board.score_order) AS score
            FROM centile_store.players x WHERE x.board_id = p.board_id AND x.user_id = p.user_id LIMIT 1) l ON true
        CROSS JOIN LATERAL (
            SELECT -sum(t.points) AS points FROM centile_store.score_transactions t
            WHERE v_board.mode = 'sum' AND t.board_id = p.board_id AND t.user_id = p.user_id AND t.kind = 'score'
              AND t.points < 0 AND t.occurred_at >= v_since AND t.occurred_at >= greatest(r.starts_at, a.reset_at)
              AND t.id <> ALL (a.voided)) n) g
    ORDER BY p.place;
END
$$;

COMMENT ON FUNCTION centile_store.player_histories(integer, integer[], bigint[], bigint[], bigint[], bigint[], timestamptz) IS
'The history of players that rules against cheating need. Example: SELECT h.recent, h.waiting FROM centile_store.player_histories(1, ''{1}'', ''{1}'', ''{10}'', ''{}'', ''{}'', ''2024-01-17 20:00Z'') h;';
