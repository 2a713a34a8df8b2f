-- As percentile_disc computes them: the first score, counted from the worst, that at least this
-- share of the players does not exceed.
CREATE OR REPLACE FUNCTION centile_store.percentiles(p_ranking_id bigint, p_period_id bigint)
RETURNS TABLE (percentile integer, score bigint)
LANGUAGE sql STABLE
AS $$
    SELECT n, centile.rank_key(k.rank_key, s.score_order)
    FROM centile_store.source_of(p_ranking_id, p_period_id) s
    CROSS JOIN generate_series(0, 100, 10) AS n
    CROSS JOIN LATERAL (SELECT centile_store.rank_key_at(p_ranking_id, p_period_id,
        s.players + 1 - greatest(1, (n * s.players + 99) / 100)) AS rank_key OFFSET 0) k
    WHERE k.rank_key IS NOT NULL
    ORDER BY n
$$;

COMMENT ON FUNCTION centile_store.percentiles(bigint, bigint) IS
'Scores at the tenth percentiles of a ranking, or of the archive of a period. Example: SELECT * FROM centile_store.percentiles(1, NULL);';
