-- How many players of a ranking have a key above this one: whole buckets, whole stripes of its bucket, and rows of its
-- stripe. Stable, so that all of it sees the one snapshot of the calling statement.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.count_above(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_lanes  integer := coalesce((SELECT g.lanes FROM centile_store.rankings g WHERE g.id = p_ranking_id), 0);
    v_stripe record;
    v_beside record;
    v_counts bigint[];
    v_count  bigint;
    v_above  bigint;
BEGIN
    SELECT * INTO v_stripe FROM centile_store.stripe_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key);
    SELECT * INTO v_beside FROM centile_store.stripes_beside(p_ranking_id, v_stripe.bucket, v_stripe.stripe, v_lanes);
    v_above := CASE WHEN v_beside.are_below THEN -v_beside.players ELSE v_beside.players END
        + (centile_store.count_in_stripe(v_stripe.bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_rank_key, p_tie_key, p_user_key,
                                         v_stripe.next_rank_key, v_stripe.next_tie_key, v_stripe.next_user_key))[2];
    FOR v_lane IN 0..v_lanes - 1 LOOP
        v_counts := (SELECT c.counts FROM centile_store.bucket_counts c
                     WHERE c.ranking_id = p_ranking_id AND c.lane = v_lane ORDER BY c.revision DESC LIMIT 1);
        -- Lower stripes are taken from the whole bucket.
        FOREACH v_count IN ARRAY v_counts[v_stripe.bucket + CASE WHEN v_beside.are_below THEN 1 ELSE 2 END:] LOOP
            v_above := v_above + v_count;
        END LOOP;
    END LOOP;
    RETURN v_above;
END
$$;

COMMENT ON FUNCTION centile_store.count_above(bigint, bigint, bigint, bigint) IS
'Players of a ranking above a key. Example: SELECT centile_store.count_above(r.ranking_id, 100, 0, 0) FROM centile.periods r LIMIT 1;';
