-- Players of a closed period per range of scores, as centile_store.histogram gives them for a ranking.
CREATE OR REPLACE FUNCTION centile_store.archive_histogram(p_period_id bigint, p_bars integer DEFAULT 20)
RETURNS TABLE (from_score bigint, to_score bigint, players bigint)
LANGUAGE sql STABLE
AS $$
    WITH range AS (
        SELECT worst.rank_key::numeric AS low, best.rank_key::numeric AS high, a.score_order,
               -- Scores in the range by bars, rounded up; "/" would round quotients of this size to a whole number.
               div(best.rank_key::numeric - worst.rank_key + p_bars, p_bars) AS width
        FROM centile_store.archive_of(p_period_id) a
        CROSS JOIN LATERAL centile_store.archive_rows(a.archive_name, a.score_order, 1, 1) best
        CROSS JOIN LATERAL centile_store.archive_rows(a.archive_name, a.score_order, a.players, 1) worst
    ), edge AS (
        SELECT r.score_order, (r.low + n * r.width)::bigint AS low, least(r.low + (n + 1) * r.width - 1, r.high)::bigint AS high
        FROM range r
        CROSS JOIN generate_series(0, p_bars - 1) AS n
        WHERE r.low + n * r.width <= r.high
    )
    -- Players with at least this key, at each lower edge.
    SELECT centile.rank_key(e.low, e.score_order), centile.rank_key(e.high, e.score_order),
           c.players - coalesce(lead(c.players) OVER (ORDER BY e.low), 0)
    FROM edge e
    JOIN centile_store.archive_above(p_period_id, ARRAY(SELECT x.low FROM edge x), true) c ON c.rank_key = e.low
    ORDER BY e.low
$$;

COMMENT ON FUNCTION centile_store.archive_histogram(bigint, integer) IS
'Players of a closed period by ranges of scores, worst first; both ends belong to the range. Example: SELECT * FROM centile_store.archive_histogram(2);';
