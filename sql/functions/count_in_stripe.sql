-- Rows from a key's rank up to the end of its stripe, counted in one go: those with a better rank key, those above the key,
-- and those with its rank key or a better one, the key's own row included. Where the stripe begins among players of that rank key,
-- its lower bound is given to begin at: a million may have it.
--
-- A scan ends where a single column says so, or the first one of a row comparison; by the later ones it goes on through all rows that
-- share the first. So a stripe that ends among equals is counted in three parts. Most end before a whole rank key.
SELECT centile_store.create_bucket_function('count_in_stripe',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_from_rank_key bigint, p_from_tie_key bigint, p_from_user_key bigint,
     p_to_rank_key bigint, p_to_tie_key bigint, p_to_user_key bigint', 'bigint[]',
    'IF (p_to_tie_key, p_to_user_key) = (-9223372036854775808, -9223372036854775808) THEN
        RETURN (SELECT ARRAY[count(*) - count(*) FILTER (WHERE rank_key = p_rank_key),
                             count(*) - count(*) FILTER (WHERE rank_key = p_rank_key AND (tie_key, user_key) <= (p_tie_key, p_user_key)),
                             count(*)]
                FROM %1$s WHERE ranking_id = p_ranking_id
                AND (rank_key, tie_key, user_key) >= (p_from_rank_key, p_from_tie_key, p_from_user_key) AND rank_key < p_to_rank_key);
    END IF;
    RETURN (SELECT ARRAY[count(*) - count(*) FILTER (WHERE rank_key = p_rank_key),
                         count(*) - count(*) FILTER (WHERE rank_key = p_rank_key AND (tie_key, user_key) <= (p_tie_key, p_user_key)),
                         count(*)]
            FROM (
                SELECT rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
                AND (rank_key, tie_key, user_key) >= (p_from_rank_key, p_from_tie_key, p_from_user_key) AND rank_key < p_to_rank_key
                UNION ALL
                SELECT rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id AND rank_key = p_to_rank_key
                AND (tie_key, user_key) >= (CASE WHEN p_from_rank_key = p_to_rank_key THEN p_from_tie_key ELSE -9223372036854775808 END,
                                            CASE WHEN p_from_rank_key = p_to_rank_key THEN p_from_user_key ELSE -9223372036854775808 END)
                AND tie_key < p_to_tie_key
                UNION ALL
                SELECT rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id AND rank_key = p_to_rank_key
                AND tie_key = p_to_tie_key AND user_key < p_to_user_key
                AND user_key >= CASE WHEN (p_from_rank_key, p_from_tie_key) = (p_to_rank_key, p_to_tie_key)
                                     THEN p_from_user_key ELSE -9223372036854775808 END) k);');

COMMENT ON FUNCTION centile_store.count_in_stripe(smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Rows of a stripe with a better rank key, above a key, and no worse than its rank key. Example: SELECT centile_store.count_in_stripe(50::smallint, 1, 0, 0, 0, 0, -9223372036854775808, -9223372036854775808, 100, 0, 0);';
