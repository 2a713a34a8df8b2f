-- Players of a bucket in higher stripes than one: whole stripes by their counts, added over the lanes.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.stripes_above(p_ranking_id bigint, p_bucket smallint, p_stripe integer) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT coalesce(sum(c.players), 0)
        FROM centile_store.rankings g
        CROSS JOIN generate_series(0, g.lanes - 1) AS n
        CROSS JOIN LATERAL (
            SELECT s.counts FROM centile_store.stripe_counts s
            WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket AND s.lane = n ORDER BY s.revision DESC LIMIT 1) s
        CROSS JOIN unnest(s.counts[p_stripe + 1:]) AS c (players)
        WHERE g.id = p_ranking_id);
END
$$;

COMMENT ON FUNCTION centile_store.stripes_above(bigint, smallint, integer) IS
'Players of a bucket above one of its stripes. Example: SELECT centile_store.stripes_above(1, 50::smallint, 1);';
