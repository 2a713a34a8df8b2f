-- A light look at the counts of a current ranking, in one snapshot. Without a bucket: the sum of a bucket's stripe counts against
-- its bucket count, for all buckets, from arrays alone. With one: the rows of its table against the counts of its stripes (stripe 0:
-- rows below the lowest), unless the bucket has more than p_most players. No row when all is well, or when the ranking is
-- not current any more.
CREATE FUNCTION centile_store.count_differences(p_ranking_id bigint, p_bucket smallint DEFAULT NULL, p_most bigint DEFAULT NULL)
RETURNS TABLE (bucket smallint, stripe integer, expected bigint, found bigint)
LANGUAGE plpgsql STABLE
SET work_mem = '32MB'
AS $$
#variable_conflict use_column
DECLARE
    v_loads bigint[] := centile_store.bucket_totals(p_ranking_id);
BEGIN
    IF NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = p_ranking_id) THEN
        RETURN;
    ELSIF p_bucket IS NULL THEN
        RETURN QUERY
        SELECT x.bucket, NULL::integer, x.in_stripes, x.in_bucket
        FROM (SELECT n::smallint AS bucket, coalesce(v_loads[n + 1], 0) AS in_bucket,
                     (SELECT coalesce(sum(u.players), 0)::bigint FROM unnest(centile_store.stripe_totals(p_ranking_id, n::smallint)) AS u (players)) AS in_stripes
              FROM generate_series(0, 99) AS n) x
        WHERE x.in_stripes <> x.in_bucket
        ORDER BY x.bucket;
    ELSIF p_most IS NULL OR coalesce(v_loads[p_bucket + 1], 0) <= p_most THEN
        RETURN QUERY EXECUTE format($query$
            SELECT $2, coalesce(r.stripe, c.stripe)::integer, coalesce(r.players, 0), coalesce(c.players, 0)
            FROM (SELECT k.stripe, count(*) FILTER (WHERE NOT k.is_bound) AS players
                  FROM (SELECT b.is_bound,
                               count(*) FILTER (WHERE b.is_bound) OVER (ORDER BY b.rank_key, b.tie_key, b.user_key, NOT b.is_bound ROWS UNBOUNDED PRECEDING) AS stripe
                        FROM (SELECT rank_key, tie_key, user_key, false AS is_bound FROM centile_store.%I WHERE ranking_id = $1
                              UNION ALL
                              SELECT rank_key, tie_key, user_key, true FROM centile_store.stripes WHERE ranking_id = $1 AND bucket = $2) b) k
                  GROUP BY k.stripe) r
            FULL JOIN unnest($3) WITH ORDINALITY AS c (players, stripe) ON c.stripe = r.stripe
            WHERE coalesce(r.players, 0) <> coalesce(c.players, 0)
            ORDER BY 2
            $query$, centile_store.bucket_table(p_bucket))
        USING p_ranking_id, p_bucket, centile_store.stripe_totals(p_ranking_id, p_bucket);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.count_differences(bigint, smallint, bigint) IS
'Where the counts of a ranking differ from each other, or from the rows of a bucket. Example: SELECT * FROM centile_store.count_differences(1, 50::smallint);';
