-- Buckets of a ranking in which a stripe is past twice the target, or two neighbours together have less than half of it, the one with
-- the largest stripe first: a look without any lock, before tidy_buckets takes one.
CREATE FUNCTION centile_store.buckets_to_tidy(p_ranking_id bigint) RETURNS SETOF smallint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    SELECT x.bucket
    FROM (SELECT n::smallint AS bucket, u.players,
                 lead(u.players) OVER (PARTITION BY n ORDER BY u.place) AS next, b.stripe_target
          FROM centile_store.rankings g
          JOIN centile_store.boards b ON b.id = g.board_id
          CROSS JOIN generate_series(0, 99) AS n
          CROSS JOIN unnest(centile_store.stripe_totals(g.id, n::smallint)) WITH ORDINALITY AS u (players, place)
          WHERE g.id = p_ranking_id) x
    GROUP BY x.bucket
    HAVING bool_or(x.players > 2 * x.stripe_target) OR bool_or(2 * (x.players + x.next) < x.stripe_target)
    ORDER BY max(x.players) DESC;
END
$$;

COMMENT ON FUNCTION centile_store.buckets_to_tidy(bigint) IS
'Buckets with stripes that have grown too large, or are small enough to be merged. Example: SELECT * FROM centile_store.buckets_to_tidy(1);';
