-- Up to p_bars ranges of equal width from the worst score to the best.
CREATE OR REPLACE FUNCTION centile_store.histogram(p_ranking_id bigint, p_period_id bigint, p_bars integer DEFAULT 20)
RETURNS TABLE (from_score bigint, to_score bigint, players bigint)
LANGUAGE sql STABLE
AS $$
    WITH range AS (
        -- The width is rounded up; "/" would round quotients of this size to a whole number.
        SELECT k.low, k.high, div(k.high - k.low + p_bars, p_bars) AS width, s.score_order
        FROM centile_store.source_of(p_ranking_id, p_period_id) s
        CROSS JOIN LATERAL (
            SELECT centile_store.rank_key_at(p_ranking_id, p_period_id, s.players)::numeric AS low,
                   centile_store.rank_key_at(p_ranking_id, p_period_id, 1)::numeric AS high) k
    ), edge AS MATERIALIZED (
        SELECT r.score_order, n, (r.low + n * r.width)::bigint AS low, least(r.low + (n + 1) * r.width - 1, r.high)::bigint AS high
        FROM range r
        CROSS JOIN generate_series(0, p_bars - 1) AS n
        WHERE r.low + n * r.width <= r.high
    )
    SELECT centile.rank_key(e.low, e.score_order), centile.rank_key(e.high, e.score_order),
           c.at_least - coalesce(lead(c.at_least) OVER (ORDER BY e.n), 0)
    FROM edge e
    JOIN unnest(centile_store.players_above(p_ranking_id, p_period_id,
                    ARRAY(SELECT centile_store.lowest_key(x.low) FROM edge x ORDER BY x.n)))
        WITH ORDINALITY AS c (at_least, n) ON c.n = e.n + 1
    ORDER BY e.n
$$;

COMMENT ON FUNCTION centile_store.histogram(bigint, bigint, integer) IS
'Players of a ranking, or of the archive of a period, by ranges of scores, worst first; both ends belong to the range. Example: SELECT * FROM centile_store.histogram(1, NULL);';
