-- From a position to the key there: the bucket by the buckets' counts, the stripe by its stripes' counts, and within the
-- stripe a walk over a few hundred rows. So page 100,000 costs what page 1 costs.
CREATE FUNCTION centile_store.key_at(p_ranking_id bigint, p_position bigint)
RETURNS TABLE (bucket smallint, rank_key bigint, tie_key bigint, user_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_buckets bigint[] := centile_store.bucket_totals(p_ranking_id);
    v_stripes bigint[];
    v_left    bigint := p_position;
    v_bucket  smallint := 99;
    v_stripe  integer;
    v_next    centile_store.stripes;
BEGIN
    IF v_buckets IS NULL OR p_position < 1 THEN
        RETURN;
    END IF;
    WHILE v_left > v_buckets[v_bucket + 1] LOOP
        v_left := v_left - v_buckets[v_bucket + 1];
        v_bucket := v_bucket - 1;
        IF v_bucket < 0 THEN
            RETURN;
        END IF;
    END LOOP;

    v_stripes := centile_store.stripe_totals(p_ranking_id, v_bucket);
    v_stripe := cardinality(v_stripes);
    WHILE v_left > v_stripes[v_stripe] LOOP
        v_left := v_left - v_stripes[v_stripe];
        v_stripe := v_stripe - 1;
    END LOOP;

    -- From the upper end of the stripe down; the next stripe's lower bound is the first key that is too high. No player has the
    -- least user key, which a bound may have.
    SELECT * INTO v_next FROM centile_store.stripes s
    WHERE s.ranking_id = p_ranking_id AND s.bucket = v_bucket AND s.stripe = v_stripe + 1;
    RETURN QUERY
    SELECT v_bucket, k.rank_key, k.tie_key, k.user_key
    FROM centile_store.bucket_keys_down(v_bucket, p_ranking_id,
        coalesce(v_next.rank_key, 9223372036854775807), coalesce(v_next.tie_key, 9223372036854775807),
        CASE WHEN v_next.user_key IS NULL THEN 9223372036854775807
             ELSE greatest(v_next.user_key, -9223372036854775807) - 1 END, v_left::integer) k
    ORDER BY k.rank_key, k.tie_key, k.user_key LIMIT 1;
END
$$;

COMMENT ON FUNCTION centile_store.key_at(bigint, bigint) IS
'The key at a position of a ranking; no row beyond the last. Example: SELECT * FROM centile_store.key_at(1, 3);';
