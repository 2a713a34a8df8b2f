-- The bucket of a key, and how many of its players have a better rank key, stand above the key, and have its rank key or a
-- better one: whole stripes by their counts, from above or from below, then rows of the key's stripe, from the end that its rank key is
-- nearer to. has_all_equals tells whether players with the same rank key can stand in this stripe only; if not, the first and the last
-- number leave some out. No row where the layout is damaged.
CREATE FUNCTION centile_store.above_in_bucket(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_lanes integer)
RETURNS TABLE (bucket smallint, other_stripes bigint, are_below boolean, in_stripe bigint[], has_all_equals boolean)
LANGUAGE sql STABLE
AS $$
    SELECT s.bucket, o.players, o.are_below,
           -- In floating point, where the ends of all keys have a difference. The greatest rank key of all is
           -- counted from above.
           CASE WHEN p_rank_key < s.next_rank_key AND p_rank_key::double precision - s.low_rank_key < s.next_rank_key::double precision - p_rank_key
               THEN centile_store.count_below_in_stripe(s.bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key,
                                                        s.low_rank_key, s.low_tie_key, s.low_user_key, o.own)
               ELSE centile_store.count_in_stripe(s.bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_rank_key,
                                                  CASE WHEN s.low_rank_key = p_rank_key THEN s.low_tie_key ELSE -9223372036854775808 END,
                                                  CASE WHEN s.low_rank_key = p_rank_key THEN s.low_user_key ELSE -9223372036854775808 END,
                                                  s.next_rank_key, s.next_tie_key, s.next_user_key) END,
           (s.low_rank_key, s.low_tie_key) <= (p_rank_key, -9223372036854775808) AND p_rank_key < s.next_rank_key
    FROM centile_store.stripe_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key) s
    CROSS JOIN LATERAL centile_store.stripes_beside(p_ranking_id, s.bucket, s.stripe, p_lanes) o
$$;

COMMENT ON FUNCTION centile_store.above_in_bucket(bigint, bigint, bigint, bigint, integer) IS
'The bucket of a key, and the players above it in that bucket. Example: SELECT * FROM centile_store.above_in_bucket(1, 100, 0, 0, 1);';
