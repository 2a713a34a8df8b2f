-- How many players of a ranking have a key above this one: whole buckets, whole stripes of its bucket, and rows of its
-- stripe. Stable, so that all of it sees the one snapshot of the calling statement.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.count_above(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_stripe record;
BEGIN
    SELECT * INTO v_stripe FROM centile_store.stripe_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key);
    RETURN (SELECT coalesce(sum(c.players), 0)
            FROM centile_store.rankings g
            CROSS JOIN generate_series(0, g.lanes - 1) AS n
            CROSS JOIN LATERAL (
                SELECT b.counts FROM centile_store.bucket_counts b
                WHERE b.ranking_id = p_ranking_id AND b.lane = n ORDER BY b.revision DESC LIMIT 1) b
            CROSS JOIN unnest(b.counts[v_stripe.bucket + 2:]) AS c (players)
            WHERE g.id = p_ranking_id)
        + centile_store.stripes_above(p_ranking_id, v_stripe.bucket, v_stripe.stripe)
        + centile_store.count_between(v_stripe.bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key,
                                      v_stripe.next_rank_key, v_stripe.next_tie_key, v_stripe.next_user_key);
END
$$;

COMMENT ON FUNCTION centile_store.count_above(bigint, bigint, bigint, bigint) IS
'Players of a ranking above a key. Example: SELECT centile_store.count_above(r.ranking_id, 100, 0, 0) FROM centile.periods r LIMIT 1;';
