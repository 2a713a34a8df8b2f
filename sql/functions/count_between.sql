-- Rows of a bucket strictly between two keys: the count inside a stripe.
SELECT centile_store.create_bucket_function('count_between',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_to_rank_key bigint, p_to_tie_key bigint, p_to_user_key bigint', 'bigint',
    'RETURN (SELECT count(*) FROM %s WHERE ranking_id = p_ranking_id
        AND (rank_key, tie_key, user_key) > (p_rank_key, p_tie_key, p_user_key)
        AND (rank_key, tie_key, user_key) < (p_to_rank_key, p_to_tie_key, p_to_user_key));');

COMMENT ON FUNCTION centile_store.count_between(smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Rows of a bucket between two keys, both excluded. Example: SELECT centile_store.count_between(50::smallint, 1, 0, 0, 0, 100, 0, 0);';
