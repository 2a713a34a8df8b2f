CREATE OR REPLACE FUNCTION centile_store.rows_around(p_ranking_id bigint, p_user_id bigint, p_around integer)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz, tiebreak bigint)
LANGUAGE sql STABLE
AS $$
    SELECT o.position + n.step, coalesce(o.position + n.first_equal, n.better + 1), n.user_id, n.user_name, n.avatar, n.score, n.reached_at, n.tiebreak
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    JOIN LATERAL centile_store.applied_key(g.id, p_user_id) l ON l.rank_key IS NOT NULL
    CROSS JOIN LATERAL (SELECT (l.rank_key, l.tie_key, -p_user_id)::centile_store.rank_key AS key OFFSET 0) k
    CROSS JOIN LATERAL (SELECT 1 + centile_store.count_above(g.id, k.key) AS position OFFSET 0) o
    CROSS JOIN LATERAL centile_store.bucket_of(g.id, l.rank_key, l.tie_key, -p_user_id) s
    CROSS JOIN LATERAL centile_store.neighbours(g.id, s.bucket, b.ties = 'shared', b.score_order, k.key, p_around, b.tiebreak_order) n
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.rows_around(bigint, bigint, integer) IS
'A player of a ranking with up to p_around players above and below. Example: SELECT position, rank, user_id, score FROM centile_store.rows_around(1, 1, 4);';
