-- The player's key at the applied batches: the key before the first change that is not applied, or
-- the entry's key if there is none. NULL if the player had no entry then. Without bucket rows, it is
-- always the entry's key. In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.applied_key(p_ranking_id bigint, p_user_id bigint, OUT rank_key bigint, OUT tie_key bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_player record;
BEGIN
    SELECT g.board_id, g.has_bucket_rows, x.lane, p.batch, (SELECT a.batch FROM centile_store.applied a
                                         WHERE a.board_id = g.board_id AND a.lane = x.lane ORDER BY a.batch DESC LIMIT 1) AS applied
    INTO v_player
    FROM centile_store.rankings g
    CROSS JOIN centile_store.users u
    CROSS JOIN LATERAL (SELECT (u.lane_hash % g.lanes)::smallint AS lane) x
    LEFT JOIN centile_store.players p ON p.board_id = g.players_of AND p.user_id = u.id AND p.lane = x.lane
    WHERE g.id = p_ranking_id AND u.id = p_user_id;
    IF v_player.has_bucket_rows AND v_player.batch > coalesce(v_player.applied, 0) THEN
        SELECT e.was_rank_key, e.was_tie_key INTO rank_key, tie_key
        FROM centile_store.batch_log c
        CROSS JOIN LATERAL (
            SELECT e.* FROM unnest(c.ranking_ids, c.user_ids, c.was_rank_keys, c.was_tie_keys) AS e (ranking_id, user_id, was_rank_key, was_tie_key)
            WHERE e.ranking_id = p_ranking_id AND e.user_id = p_user_id LIMIT 1) e
        WHERE c.board_id = v_player.board_id AND c.lane = v_player.lane AND c.batch > coalesce(v_player.applied, 0) AND p_user_id = ANY (c.user_ids)
        ORDER BY c.batch LIMIT 1;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    SELECT l.rank_key, l.tie_key INTO rank_key, tie_key FROM centile_store.leaderboard l
    WHERE l.ranking_id = p_ranking_id AND l.user_id = p_user_id;
END
$$;

COMMENT ON FUNCTION centile_store.applied_key(bigint, bigint) IS
'Rank key and tie key of a player at the applied batches. Example: SELECT k.rank_key FROM centile_store.applied_key(1, 1) k;';
