-- The keys are NULL if the player should have no standing. Includes players in another lane than their
-- own. All rows are of one snapshot, in which the player's lane has this batch, and are ordered by
-- lane and user id. For a rolling window that is being filled, rows with ends_act follow every
-- p_act_players players of a lane and the last one, so that no act reads more players.
CREATE OR REPLACE FUNCTION centile_store.differing_players(p_ranking_id bigint, p_act_players integer DEFAULT 5000)
RETURNS TABLE (lane smallint, batch bigint, user_id bigint, rank_key bigint, tie_key bigint, only_zeros boolean, ends_act boolean)
LANGUAGE plpgsql STABLE
SET work_mem = '128MB'
-- The planner underestimates the rows of a function, and would choose a nested loop.
SET enable_nestloop = off
AS $$
DECLARE
    v_ranking centile_store.rankings;
BEGIN
    SELECT * INTO STRICT v_ranking FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    RETURN QUERY
    WITH filling AS (
        SELECT f.lane FROM centile_store.fillings f
        WHERE f.board_id = v_ranking.board_id AND f.ranking_id = p_ranking_id AND f.standings_up_to < centile_store.key_max()
    )
    SELECT x.lane, n.batch, x.user_id, x.rank_key, x.tie_key, x.only_zeros, x.ends_act
    FROM (SELECT f.lane, centile_store.key_max() AS user_id, NULL::bigint AS rank_key, NULL::bigint AS tie_key, NULL::boolean AS only_zeros, true AS ends_act
          FROM filling f
          UNION ALL
          SELECT p.lane, p.user_id, NULL, NULL, NULL, true
          FROM (SELECT p.lane, p.user_id, row_number() OVER (PARTITION BY p.lane ORDER BY p.user_id) AS n
                FROM centile_store.players p WHERE p.board_id = v_ranking.board_id AND p.lane IN (SELECT f.lane FROM filling f)) p
          WHERE p.n % p_act_players = 0
          UNION ALL
          SELECT (u.lane_hash % v_ranking.lanes)::smallint AS lane, u.id AS user_id, e.rank_key, e.tie_key, e.only_zeros, false
          FROM centile.entries_from_ledger(v_ranking.period_id) e
          FULL JOIN (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id) l ON l.user_id = e.user_id
          JOIN centile_store.users u ON u.id = coalesce(e.user_id, l.user_id)
          WHERE (e.rank_key, e.tie_key, e.only_zeros) IS DISTINCT FROM (l.rank_key, l.tie_key, l.only_zeros) OR l.lane <> u.lane_hash % v_ranking.lanes) x
    JOIN (SELECT l.lane, max(l.batch) AS batch FROM centile_store.board_lanes l WHERE l.board_id = v_ranking.board_id GROUP BY l.lane) n ON n.lane = x.lane
    ORDER BY x.lane, x.user_id, x.ends_act;
END
$$;

COMMENT ON FUNCTION centile_store.differing_players(bigint, integer) IS
'Players whose stored standing in the period of a ranking differs from the ledger, with the standing by the ledger. Example: SELECT user_id, rank_key FROM centile_store.differing_players(1);';
