-- Players of each of the 100 buckets: the counts of all lanes, added.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.bucket_totals(p_ranking_id bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT array_agg(x.players ORDER BY x.place)
        FROM (SELECT c.place, sum(c.players)::bigint AS players
              FROM centile_store.rankings g
              CROSS JOIN generate_series(0, g.lanes - 1) AS n
              CROSS JOIN LATERAL (
                  SELECT b.counts FROM centile_store.bucket_counts b
                  WHERE b.ranking_id = p_ranking_id AND b.lane = n ORDER BY b.revision DESC LIMIT 1) b
              CROSS JOIN unnest(b.counts) WITH ORDINALITY AS c (players, place)
              WHERE g.id = p_ranking_id
              GROUP BY c.place) x);
END
$$;

COMMENT ON FUNCTION centile_store.bucket_totals(bigint) IS
'Players of each bucket of a ranking, lowest first. Example: SELECT centile_store.bucket_totals(1);';
