-- The caller holds the lane.
CREATE OR REPLACE FUNCTION centile_store.write_players(p_lane centile_store.board_lanes, p_players centile_store.player_standings[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_updated bigint;
BEGIN
    UPDATE centile_store.players p
    SET batch = p_lane.batch + 1, period_ids = s.period_ids, rank_keys = s.rank_keys, tie_keys = s.tie_keys, zero_periods = s.zero_periods
    FROM unnest(p_players) AS s
    WHERE p.board_id = s.board_id AND p.user_id = s.user_id AND p.lane = p_lane.lane;
    GET DIAGNOSTICS v_updated = ROW_COUNT;
    IF v_updated < cardinality(p_players) THEN
        INSERT INTO centile_store.players (board_id, lane, user_id, batch, period_ids, rank_keys, tie_keys, zero_periods)
        SELECT s.board_id, p_lane.lane, s.user_id, p_lane.batch + 1, s.period_ids, s.rank_keys, s.tie_keys, s.zero_periods
        FROM unnest(p_players) AS s
        WHERE NOT EXISTS (SELECT FROM centile_store.players p WHERE p.board_id = s.board_id AND p.user_id = s.user_id AND p.lane = p_lane.lane);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.write_players(centile_store.board_lanes, centile_store.player_standings[]) IS
'Replaces all standings of some players of a lane, as a batch. Example: SELECT centile_store.write_players(l, ''{}'') FROM centile_store.board_lanes l WHERE l.board_id = 1 AND l.lane = 0;';
