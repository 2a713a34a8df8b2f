-- Takes the standings as centile_store.differing_players has computed them at p_batch, and computes
-- those of players with later batches again. Bucket rows of the live ranking of the period and of its
-- segments follow by the log. In a rolling window that is being filled, scores and acts keep the
-- standings of players up to the id p_up_to current from now on.
CREATE OR REPLACE FUNCTION centile_store.repair_players(
    p_ranking_id bigint, p_lane smallint, p_batch bigint, p_up_to bigint,
    p_user_ids bigint[], p_rank_keys bigint[], p_tie_keys bigint[], p_only_zeros boolean[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan SET enable_seqscan = off
AS $$
DECLARE
    v_period   centile_store.periods;
    v_filling  centile_store.fillings;
    v_lane     centile_store.board_lanes;
    v_changed  bigint[];
    v_changes  centile_store.entry_change[];
BEGIN
    SELECT w.* INTO STRICT v_period
    FROM centile_store.rankings g
    JOIN centile_store.periods q ON q.id = g.period_id
    JOIN centile_store.periods w ON w.board_id = q.board_id AND w.kind = q.kind AND w.label = q.label AND w.segment = ''
    WHERE g.id = p_ranking_id;
    PERFORM centile_store.hold_lane(v_period.board_id, p_lane);
    SELECT * INTO STRICT v_lane FROM centile_store.board_lanes l WHERE l.board_id = v_period.board_id AND l.lane = p_lane ORDER BY l.batch DESC LIMIT 1;
    SELECT * INTO v_filling FROM centile_store.fillings f WHERE f.board_id = v_period.board_id AND f.ranking_id = p_ranking_id AND f.lane = p_lane;
    UPDATE centile_store.players p SET lane = p_lane WHERE p.board_id = v_period.board_id AND p.user_id = ANY (p_user_ids) AND p.lane <> p_lane;
    v_changed := ARRAY(
        SELECT p.user_id FROM centile_store.players p
        WHERE p.board_id = v_period.board_id AND p.lane = p_lane AND p.batch > p_batch
          AND (p.user_id = ANY (p_user_ids) OR p.user_id > v_filling.standings_up_to AND p.user_id <= p_up_to)
        UNION
        -- Scores that left a wrong standing unchanged: the player's row has no later batch.
        SELECT u FROM unnest(p_user_ids) AS u
        WHERE v_period.state <> 'preparing' AND EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = v_period.board_id AND t.user_id = u AND t.batch > p_batch));
    v_changes := centile_store.entry_changes(ARRAY[p_ranking_id], v_changed) || ARRAY(
        SELECT (p_ranking_id, u.user_id, l.rank_key, l.tie_key, u.rank_key, u.tie_key, u.only_zeros)::centile_store.entry_change
        FROM unnest(p_user_ids, p_rank_keys, p_tie_keys, p_only_zeros) AS u (user_id, rank_key, tie_key, only_zeros)
        LEFT JOIN (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id AND l.user_id = ANY (p_user_ids)) l ON l.user_id = u.user_id
        WHERE u.user_id <> ALL (v_changed) AND num_nonnulls(u.rank_key, l.rank_key) > 0);
    -- Takes the period's standing out, and appends the right one.
    UPDATE centile_store.players p
    SET batch = CASE v_period.state WHEN 'preparing' THEN p.batch ELSE v_lane.batch + 1 END,
        period_ids = CASE WHEN c.rank_key IS NULL THEN o.period_ids ELSE o.period_ids || v_period.id END,
        rank_keys = CASE WHEN c.rank_key IS NULL THEN o.rank_keys ELSE o.rank_keys || c.rank_key END,
        tie_keys = CASE WHEN c.rank_key IS NULL THEN o.tie_keys ELSE o.tie_keys || c.tie_key END,
        zero_periods = CASE WHEN c.only_zeros THEN array_remove(s.zero_periods, v_period.id) || v_period.id ELSE array_remove(s.zero_periods, v_period.id) END
    FROM unnest(v_changes) AS c
    JOIN centile_store.players s ON s.board_id = v_period.board_id AND s.user_id = c.user_id AND s.lane = p_lane
    CROSS JOIN LATERAL (SELECT array_position(s.period_ids, v_period.id) AS n) a
    CROSS JOIN LATERAL (SELECT CASE WHEN a.n IS NULL THEN s.period_ids ELSE s.period_ids[:a.n - 1] || s.period_ids[a.n + 1:] END AS period_ids,
                               CASE WHEN a.n IS NULL THEN s.rank_keys ELSE s.rank_keys[:a.n - 1] || s.rank_keys[a.n + 1:] END AS rank_keys,
                               CASE WHEN a.n IS NULL THEN s.tie_keys ELSE s.tie_keys[:a.n - 1] || s.tie_keys[a.n + 1:] END AS tie_keys) o
    WHERE p.board_id = v_period.board_id AND p.user_id = c.user_id AND p.lane = p_lane;
    INSERT INTO centile_store.players (board_id, lane, user_id, batch, period_ids, rank_keys, tie_keys, zero_periods)
    SELECT v_period.board_id, p_lane, c.user_id, v_lane.batch + 1, ARRAY[v_period.id], ARRAY[c.rank_key], ARRAY[c.tie_key], CASE WHEN c.only_zeros THEN ARRAY[v_period.id] END
    FROM unnest(v_changes) AS c
    WHERE c.rank_key IS NOT NULL AND NOT EXISTS (SELECT FROM centile_store.players p WHERE p.board_id = v_period.board_id AND p.user_id = c.user_id AND p.lane = p_lane);
    -- A window that is being filled has no ranking yet, so nothing is logged. Batches that read the old
    -- standings retry.
    PERFORM centile_store.advance_lane(v_lane, v_lane.last_at, (
        coalesce(array_agg(r.id), '{}'), coalesce(array_agg(c.user_id), '{}'), coalesce(array_agg(c.was_rank_key), '{}'),
        coalesce(array_agg(c.was_tie_key), '{}'), coalesce(array_agg(c.rank_key), '{}'), coalesce(array_agg(c.tie_key), '{}')))
    FROM unnest(v_changes) AS c
    CROSS JOIN LATERAL (
        SELECT q.ranking_id AS id FROM centile_store.periods q
        WHERE q.board_id = v_period.board_id AND q.kind = v_period.kind AND q.label = v_period.label AND q.ranking_id IS NOT NULL
          AND (q.segment = '' OR q.segment IN (SELECT centile_store.segments_at(q.board_id, c.user_id, q.ends_at)))) r;
    UPDATE centile_store.fillings f SET standings_up_to = p_up_to
    WHERE f.board_id = v_period.board_id AND f.ranking_id = p_ranking_id AND f.lane = p_lane AND v_period.state = 'preparing';
END
$$;

COMMENT ON FUNCTION centile_store.repair_players(bigint, smallint, bigint, bigint, bigint[], bigint[], bigint[], boolean[]) IS
'Sets standings of players of a lane to those of the ledger. Example: SELECT centile_store.repair_players(1, d.lane, d.batch, 0, array_agg(d.user_id), array_agg(d.rank_key), array_agg(d.tie_key), array_agg(d.only_zeros)) FROM centile_store.differing_players(1) d GROUP BY d.lane, d.batch;';
