-- What count_in_stripe counts, from the other end: rows of the stripe up to the last one of a key's rank, taken from the p_players that it
-- has. For a key whose equals all stand in the stripe or below it, not above: a scan ends by its rank key then.
SELECT centile_store.create_bucket_function('count_below_in_stripe',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_from_rank_key bigint, p_from_tie_key bigint, p_from_user_key bigint, p_players bigint', 'bigint[]',
    'RETURN (SELECT ARRAY[p_players - count(*),
                          p_players - count(*) + count(*) FILTER (WHERE rank_key = p_rank_key AND (tie_key, user_key) > (p_tie_key, p_user_key)),
                          p_players - count(*) + count(*) FILTER (WHERE rank_key = p_rank_key)]
             FROM %1$s WHERE ranking_id = p_ranking_id
             AND (rank_key, tie_key, user_key) >= (p_from_rank_key, p_from_tie_key, p_from_user_key) AND rank_key <= p_rank_key);');

COMMENT ON FUNCTION centile_store.count_below_in_stripe(smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Rows of a stripe with a better rank key, above a key, and no worse than its rank key, by those below. Example: SELECT centile_store.count_below_in_stripe(50::smallint, 1, 0, 0, 0, -9223372036854775808, -9223372036854775808, -9223372036854775808, 10);';
