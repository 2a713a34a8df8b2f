-- Players per range of scores: up to p_bars ranges of equal width from the worst score to the best.
CREATE OR REPLACE FUNCTION centile_store.histogram(p_ranking_id bigint, p_bars integer DEFAULT 20)
RETURNS TABLE (from_score bigint, to_score bigint, players bigint)
LANGUAGE sql STABLE
AS $$
    WITH range AS (
        SELECT worst.rank_key::numeric AS low, best.rank_key::numeric AS high,
               -- Scores in the range by bars, rounded up; "/" would round quotients of this size to a whole number.
               div(best.rank_key::numeric - worst.rank_key + p_bars, p_bars) AS width, b.score_order
        FROM centile_store.rankings g
        JOIN centile_store.boards b ON b.id = g.board_id
        CROSS JOIN LATERAL centile_store.key_at(g.id, 1) best
        CROSS JOIN LATERAL centile_store.key_at(g.id, centile_store.player_count(g.id)) worst
        WHERE g.id = p_ranking_id
    ), edge AS (
        -- Players with at least this key, at each lower edge.
        SELECT r.score_order, r.low + n * r.width AS low, least(r.low + (n + 1) * r.width - 1, r.high) AS high,
               centile_store.count_above(p_ranking_id, (r.low + n * r.width)::bigint, -9223372036854775808, -9223372036854775808) AS at_least
        FROM range r
        CROSS JOIN generate_series(0, p_bars - 1) AS n
        WHERE r.low + n * r.width <= r.high
    )
    SELECT centile.rank_key(e.low::bigint, e.score_order), centile.rank_key(e.high::bigint, e.score_order),
           e.at_least - coalesce(lead(e.at_least) OVER (ORDER BY e.low), 0)
    FROM edge e
    ORDER BY e.low
$$;

COMMENT ON FUNCTION centile_store.histogram(bigint, integer) IS
'Players of a ranking by ranges of scores, worst first; both ends belong to the range. Example: SELECT * FROM centile_store.histogram(1);';
