-- Keys of a bucket above one, worst first.
SELECT centile_store.create_bucket_function('bucket_keys_up',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_limit integer',
    'TABLE (rank_key bigint, tie_key bigint, user_key bigint)',
    'RETURN QUERY SELECT rank_key, tie_key, user_key FROM %s WHERE ranking_id = p_ranking_id
        AND (rank_key, tie_key, user_key) > (p_rank_key, p_tie_key, p_user_key)
        ORDER BY rank_key, tie_key, user_key LIMIT p_limit;');

COMMENT ON FUNCTION centile_store.bucket_keys_up(smallint, bigint, bigint, bigint, bigint, integer) IS
'Keys of a bucket above a key, worst first. Example: SELECT * FROM centile_store.bucket_keys_up(50::smallint, 1, 0, 0, 0, 3);';
