-- Players of each stripe of a bucket, lowest first: the counts of all lanes, added.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.stripe_totals(p_ranking_id bigint, p_bucket smallint) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT array_agg(x.players ORDER BY x.place)
        FROM (SELECT c.place, sum(c.players)::bigint AS players
              FROM centile_store.rankings g
              CROSS JOIN generate_series(0, g.lanes - 1) AS n
              CROSS JOIN LATERAL (
                  SELECT s.counts FROM centile_store.stripe_counts s
                  WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket AND s.lane = n ORDER BY s.revision DESC LIMIT 1) s
              CROSS JOIN unnest(s.counts) WITH ORDINALITY AS c (players, place)
              WHERE g.id = p_ranking_id
              GROUP BY c.place) x);
END
$$;

COMMENT ON FUNCTION centile_store.stripe_totals(bigint, smallint) IS
'Players of each stripe of a bucket, lowest first. Example: SELECT centile_store.stripe_totals(1, 50::smallint);';
