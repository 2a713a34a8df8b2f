-- Rows from a key's rank up to the end of its stripe, counted in one go: those with a better rank key, those above the key,
-- and those with its rank key or a better one, the key's own row included. Where the stripe begins among players of that rank key,
-- its lower bound is given to begin at: a million may have it.
SELECT centile_store.create_bucket_function('count_in_stripe',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_from_rank_key bigint, p_from_tie_key bigint, p_from_user_key bigint,
     p_to_rank_key bigint, p_to_tie_key bigint, p_to_user_key bigint', 'bigint[]',
    'RETURN (SELECT ARRAY[count(*) FILTER (WHERE rank_key > p_rank_key),
                          count(*) FILTER (WHERE (rank_key, tie_key, user_key) > (p_rank_key, p_tie_key, p_user_key)),
                          count(*)]
        FROM %s WHERE ranking_id = p_ranking_id AND (rank_key, tie_key, user_key) >= (p_from_rank_key, p_from_tie_key, p_from_user_key)
        AND (rank_key, tie_key, user_key) < (p_to_rank_key, p_to_tie_key, p_to_user_key));');

COMMENT ON FUNCTION centile_store.count_in_stripe(smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Rows of a stripe with a better rank key, above a key, and no worse than its rank key. Example: SELECT centile_store.count_in_stripe(50::smallint, 1, 0, 0, 0, 0, -9223372036854775808, -9223372036854775808, 100, 0, 0);';
