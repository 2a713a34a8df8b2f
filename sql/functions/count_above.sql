-- How many players of a ranking have a key above this one: whole buckets, whole stripes of its bucket, and rows of its
-- stripe. Stable, so that all of it sees the one snapshot of the calling statement.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.count_above(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_lanes  integer := (SELECT g.lanes FROM centile_store.rankings g WHERE g.id = p_ranking_id);
    v_bucket record;
    v_counts bigint[];
    v_count  bigint;
    v_above  bigint;
BEGIN
    -- Nobody stands in a ranking that is not there.
    IF v_lanes IS NULL THEN
        RETURN 0;
    END IF;
    SELECT * INTO v_bucket FROM centile_store.above_in_bucket(p_ranking_id, p_rank_key, p_tie_key, p_user_key, v_lanes);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'ranking % has no counts of the stripe of a key', p_ranking_id
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;
    v_above := v_bucket.in_stripe[2] + CASE WHEN v_bucket.are_below THEN -v_bucket.other_stripes ELSE v_bucket.other_stripes END;
    FOR v_lane IN 0..v_lanes - 1 LOOP
        v_counts := (SELECT c.counts FROM centile_store.bucket_counts c
                     WHERE c.ranking_id = p_ranking_id AND c.lane = v_lane ORDER BY c.revision DESC LIMIT 1);
        -- Lower stripes are taken from the whole bucket.
        FOREACH v_count IN ARRAY v_counts[v_bucket.bucket + CASE WHEN v_bucket.are_below THEN 1 ELSE 2 END:] LOOP
            v_above := v_above + v_count;
        END LOOP;
    END LOOP;
    RETURN v_above;
END
$$;

COMMENT ON FUNCTION centile_store.count_above(bigint, bigint, bigint, bigint) IS
'Players of a ranking above a key. Example: SELECT centile_store.count_above(r.ranking_id, 100, 0, 0) FROM centile.periods r LIMIT 1;';
