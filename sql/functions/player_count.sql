-- In plpgsql, which keeps its plans. Reads all players of the board for a ranking without bucket
-- rows.
CREATE OR REPLACE FUNCTION centile_store.player_count(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_ranking record;
BEGIN
    SELECT g.players_of, p.id AS period_id, p.segment INTO v_ranking
    FROM centile_store.rankings g JOIN centile_store.periods p ON p.id = g.period_id
    WHERE g.id = p_ranking_id AND NOT g.has_bucket_rows;
    IF v_ranking.segment = '' THEN
        -- Faster than the view.
        RETURN (SELECT count(*) FROM centile_store.players x WHERE x.board_id = v_ranking.players_of AND v_ranking.period_id = ANY (x.period_ids));
    ELSIF FOUND THEN
        RETURN (SELECT count(*) FROM centile_store.leaderboard l WHERE l.ranking_id = p_ranking_id);
    END IF;
    RETURN (SELECT coalesce(sum(n.players), 0)::bigint
            FROM centile_store.rankings g
            CROSS JOIN LATERAL generate_series(0, g.lanes - 1) AS l (lane)
            CROSS JOIN LATERAL (SELECT c.counts FROM centile_store.bucket_counts c
                                WHERE c.ranking_id = g.id AND c.lane = l.lane ORDER BY c.revision DESC LIMIT 1) c
            CROSS JOIN LATERAL unnest(c.counts) AS n (players)
            WHERE g.id = p_ranking_id);
END
$$;

COMMENT ON FUNCTION centile_store.player_count(bigint) IS
'Players of a ranking. Example: SELECT centile_store.player_count(1);';
