-- The bucket of a key, and the players above the key in it: whole stripes by their counts, then rows of the key's stripe.
CREATE FUNCTION centile_store.above_in_bucket(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint)
RETURNS TABLE (bucket smallint, above bigint)
LANGUAGE sql STABLE
AS $$
    SELECT s.bucket,
           (SELECT coalesce(sum(c.players), 0)
            FROM centile_store.stripe_counts x, unnest(x.counts[s.stripe + 1:]) AS c (players)
            WHERE x.ranking_id = p_ranking_id AND x.bucket = s.bucket)::bigint
           + centile_store.count_between(s.bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key,
                                         s.next_rank_key, s.next_tie_key, s.next_user_key)
    FROM centile_store.stripe_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key) s
$$;

COMMENT ON FUNCTION centile_store.above_in_bucket(bigint, bigint, bigint, bigint) IS
'The bucket of a key and the players above the key in that bucket. Example: SELECT * FROM centile_store.above_in_bucket(1, 100, 0, 0);';
