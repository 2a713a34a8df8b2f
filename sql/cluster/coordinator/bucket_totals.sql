-- All lanes at once: each server answers one query.
CREATE OR REPLACE FUNCTION centile_store.bucket_totals(p_ranking_id bigint) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (
        SELECT array_agg(coalesce(t.players, 0) ORDER BY u.place)
        FROM centile_store.rankings g
        CROSS JOIN LATERAL unnest(g.buckets) WITH ORDINALITY AS u (bucket, place)
        LEFT JOIN (
            SELECT c.bucket - 1 AS bucket, sum(c.players)::bigint AS players
            FROM (SELECT DISTINCT ON (c.lane) c.counts FROM centile_store.bucket_counts c
                  WHERE c.ranking_id = p_ranking_id ORDER BY c.lane, c.revision DESC) l
            CROSS JOIN LATERAL unnest(l.counts) WITH ORDINALITY AS c (players, bucket)
            GROUP BY c.bucket) t ON t.bucket = u.bucket
        WHERE g.id = p_ranking_id);
END
$$;

COMMENT ON FUNCTION centile_store.bucket_totals(bigint) IS
'Players of each bucket of a ranking by place, lowest first.';
