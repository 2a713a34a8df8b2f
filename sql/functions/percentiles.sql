-- The score at each tenth percentile, worst to best, as percentile_disc gives it: the first score, counted from the worst,
-- that at least this share of the players does not exceed.
CREATE OR REPLACE FUNCTION centile_store.percentiles(p_ranking_id bigint)
RETURNS TABLE (percentile integer, score bigint)
LANGUAGE sql STABLE
AS $$
    SELECT n, centile.rank_key(k.rank_key, b.score_order)
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    CROSS JOIN LATERAL (SELECT centile_store.player_count(g.id) AS players) c
    CROSS JOIN generate_series(0, 100, 10) AS n
    CROSS JOIN LATERAL centile_store.key_at(g.id, c.players + 1 - greatest(1, (n * c.players + 99) / 100)) k
    WHERE g.id = p_ranking_id
    ORDER BY n
$$;

COMMENT ON FUNCTION centile_store.percentiles(bigint) IS
'Scores at the tenth percentiles of a ranking. Example: SELECT * FROM centile_store.percentiles(1);';
