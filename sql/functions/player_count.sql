-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.player_count(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
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
