-- Players of a ranking who would rank above a newcomer with this score.
CREATE OR REPLACE FUNCTION centile_store.newcomers_above(p_ranking_id bigint, p_score bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    -- The least bigint has no negative: where smaller is better, it is better than any score there can be.
    SELECT CASE WHEN b.score_order = 'asc' AND p_score = -9223372036854775808 THEN 0
                ELSE centile_store.count_above(g.id, centile.rank_key(p_score, b.score_order), e.edge, e.edge) END
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    CROSS JOIN LATERAL (SELECT CASE b.ties WHEN 'shared' THEN 9223372036854775807 ELSE -9223372036854775808 END AS edge) e
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.newcomers_above(bigint, bigint) IS
'Players who would rank above a newcomer with a score. Example: SELECT centile_store.newcomers_above(1, 100);';
