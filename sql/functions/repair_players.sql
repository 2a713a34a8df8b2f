-- Takes the standings as centile_store.differing_players has computed them at p_batch, and computes
-- those of players with later batches again. Bucket rows of the live ranking of the period and of its
-- segments follow by the log. In a rolling window that is being filled, scores and acts keep the
-- standings of players up to the id p_up_to current from now on.
CREATE OR REPLACE FUNCTION centile_store.repair_players(
    p_ranking_id bigint, p_lane smallint, p_batch bigint, p_up_to bigint,
    p_user_ids bigint[], p_rank_keys bigint[], p_tie_keys bigint[], p_only_zeros boolean[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_period   centile_store.periods;
    v_filling  centile_store.fillings;
    v_lane     centile_store.board_lanes;
    v_changed  bigint[];
    v_changes  centile_store.entry_change[];
BEGIN
    SELECT p.* INTO STRICT v_period FROM centile_store.rankings g JOIN centile_store.periods p ON p.id = g.period_id WHERE g.id = p_ranking_id;
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
        WHERE v_period.ranking_id IS NOT NULL AND EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = v_period.board_id AND t.user_id = u AND t.batch > p_batch));
    v_changes := centile_store.entry_changes(ARRAY[p_ranking_id], v_changed) || ARRAY(
        SELECT (p_ranking_id, u.user_id, l.rank_key, l.tie_key, u.rank_key, u.tie_key, u.only_zeros)::centile_store.entry_change
        FROM unnest(p_user_ids, p_rank_keys, p_tie_keys, p_only_zeros) AS u (user_id, rank_key, tie_key, only_zeros)
        LEFT JOIN (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id AND l.user_id = ANY (p_user_ids)) l ON l.user_id = u.user_id
        WHERE u.user_id <> ALL (v_changed) AND num_nonnulls(u.rank_key, l.rank_key) > 0);
    IF v_period.ranking_id IS NOT NULL THEN
        v_changes := ARRAY(
            SELECT (p.ranking_id, c.user_id, c.was_rank_key, c.was_tie_key, c.rank_key, c.tie_key, c.only_zeros)::centile_store.entry_change
            FROM unnest(v_changes) AS c
            JOIN centile_store.periods p ON p.board_id = v_period.board_id AND p.kind = v_period.kind AND p.label = v_period.label AND p.ranking_id IS NOT NULL
                AND (p.segment = '' OR p.segment IN (SELECT centile_store.segments_at(p.board_id, c.user_id, p.ends_at))));
    END IF;
    IF p_user_ids <> '{}' AND v_period.ranking_id IS NOT NULL THEN
        PERFORM centile_store.write_act(v_lane, v_lane.last_at, p_user_ids[1], v_changes);
    ELSE
        -- The ranking is not read yet, so nothing is logged. Batches that read the old standings retry.
        PERFORM centile_store.write_players(v_lane, centile_store.changed_players(v_period.board_id, NULL, v_changes), true);
        PERFORM centile_store.advance_lane(v_lane, v_lane.last_at);
    END IF;
    UPDATE centile_store.fillings f SET standings_up_to = p_up_to
    WHERE f.board_id = v_period.board_id AND f.ranking_id = p_ranking_id AND f.lane = p_lane AND v_period.ranking_id IS NULL;
END
$$;

COMMENT ON FUNCTION centile_store.repair_players(bigint, smallint, bigint, bigint, bigint[], bigint[], bigint[], boolean[]) IS
'Sets standings of players of a lane to those of the ledger. Example: SELECT centile_store.repair_players(1, d.lane, d.batch, 0, array_agg(d.user_id), array_agg(d.rank_key), array_agg(d.tie_key), array_agg(d.only_zeros)) FROM centile_store.differing_players(1) d GROUP BY d.lane, d.batch;';
