-- Counts from the end of the bucket that the key is probably nearer to; count_in_bucket explains
-- the three numbers. The middle between the bounds decides. A wrong guess is likely only near the
-- middle, where it costs little.
--
-- has_all_equals: all players with the rank key belong to this bucket. Otherwise only the second
-- number is right.
CREATE OR REPLACE FUNCTION centile_store.above_in_bucket(
    p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
    OUT place integer, OUT bucket smallint, OUT counted bigint[], OUT from_below boolean, OUT has_all_equals boolean)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_bucket record;
BEGIN
    IF p_rank_key IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO v_bucket FROM centile_store.bucket_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key);
    place := v_bucket.place;
    bucket := v_bucket.bucket;
    has_all_equals := p_rank_key < v_bucket.next_rank_key
        AND (v_bucket.low_rank_key, v_bucket.low_tie_key, v_bucket.low_user_key) <= (p_rank_key, centile_store.key_min(), centile_store.key_min());
    -- Floating point, because differences of the largest keys do not fit into bigint.
    from_below := CASE
        WHEN v_bucket.next_rank_key = centile_store.key_max() THEN false
        WHEN v_bucket.low_rank_key = centile_store.key_min() THEN true
        WHEN v_bucket.low_rank_key = v_bucket.next_rank_key
            THEN p_tie_key::double precision - v_bucket.low_tie_key < v_bucket.next_tie_key::double precision - p_tie_key
        ELSE p_rank_key::double precision - v_bucket.low_rank_key < v_bucket.next_rank_key::double precision - p_rank_key END;
    counted := centile_store.count_in_bucket(
        bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, has_all_equals, from_below);
END
$$;

COMMENT ON FUNCTION centile_store.above_in_bucket(bigint, bigint, bigint, bigint) IS
'Place and bucket of a key, and rows above or below it there. Example: SELECT * FROM centile_store.above_in_bucket(1, 100, 0, 0);';
