-- Players of a bucket in higher stripes than one, added over the lanes; where fewer stripes lie below, players of that stripe and
-- lower ones, to be taken from the bucket's. So at most half of the counts are added up.
-- In plpgsql, which keeps its plans, and element by element: a sub-select over the lanes is planned anew by every call, and a sum
-- over unnest takes twice as long.
CREATE FUNCTION centile_store.stripes_beside(p_ranking_id bigint, p_bucket smallint, p_stripe integer, p_lanes integer,
    OUT players bigint, OUT are_below boolean)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_counts integer[];
    v_count  integer;
BEGIN
    players := 0;
    FOR v_lane IN 0..p_lanes - 1 LOOP
        v_counts := (SELECT c.counts FROM centile_store.stripe_counts c
                     WHERE c.ranking_id = p_ranking_id AND c.bucket = p_bucket AND c.lane = v_lane ORDER BY c.revision DESC LIMIT 1);
        IF v_counts IS NULL THEN
            RAISE EXCEPTION 'ranking % has no counts of lane % in bucket %', p_ranking_id, v_lane, p_bucket
                USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
        END IF;
        are_below := 2 * p_stripe < cardinality(v_counts);
        FOREACH v_count IN ARRAY CASE WHEN are_below THEN v_counts[:p_stripe] ELSE v_counts[p_stripe + 1:] END LOOP
            players := players + v_count;
        END LOOP;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.stripes_beside(bigint, smallint, integer, integer) IS
'Players of a bucket above a stripe, or those of the stripe and below it. Example: SELECT * FROM centile_store.stripes_beside(1, 50::smallint, 1, 1);';
