-- A player with up to p_around players above and below.
CREATE FUNCTION centile_store.rows_around(p_ranking_id bigint, p_user_id bigint, p_around integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               internal_id bigint, rank_key bigint, tie_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT r.*
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    JOIN centile_store.leaderboard l ON l.ranking_id = g.id AND l.user_id = p_user_id
    CROSS JOIN LATERAL centile_store.key_climb(g.id, l.rank_key, l.tie_key, -l.user_id, p_around) k
    CROSS JOIN LATERAL centile_store.rows_down(g.id, b.ties = 'shared', b.score_order, k.rank_key, k.tie_key, k.user_key,
        1 + centile_store.count_above(g.id, l.rank_key, l.tie_key, -l.user_id) - k.steps, k.steps + 1 + p_around) r
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.rows_around(bigint, bigint, integer) IS
'Rows of a ranking around a player. Example: SELECT position, rank, user_id, score FROM centile_store.rows_around(1, 1, 4);';
