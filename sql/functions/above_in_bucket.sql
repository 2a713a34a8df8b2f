-- The place and bucket of a key, with rows counted from the end of the bucket that the key is
-- probably nearer to; see count_in_bucket for the three numbers. Nearer to which end is guessed by
-- the middle between the bounds: the counts do not tell, and a wrong guess costs most where it
-- hardly matters, in the middle.
--
-- has_all_equals: all players with the rank key belong to this bucket. If not, only the second
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
        AND (v_bucket.low_rank_key, v_bucket.low_tie_key, v_bucket.low_user_key) <= (p_rank_key, -9223372036854775808, -9223372036854775808);
    -- In floating point, where the ends of all keys have a difference.
    from_below := CASE
        WHEN v_bucket.next_rank_key = 9223372036854775807 THEN false
        WHEN v_bucket.low_rank_key = -9223372036854775808 THEN true
        WHEN v_bucket.low_rank_key = v_bucket.next_rank_key
            THEN p_tie_key::double precision - v_bucket.low_tie_key < v_bucket.next_tie_key::double precision - p_tie_key
        ELSE p_rank_key::double precision - v_bucket.low_rank_key < v_bucket.next_rank_key::double precision - p_rank_key END;
    counted := centile_store.count_in_bucket(bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, has_all_equals, from_below);
END
$$;

COMMENT ON FUNCTION centile_store.above_in_bucket(bigint, bigint, bigint, bigint) IS
'Place and bucket of a key, and rows above or below it there. Example: SELECT * FROM centile_store.above_in_bucket(1, 100, 0, 0);';
