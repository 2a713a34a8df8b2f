-- Keys of a bucket above one, as many at it and below, each with which of both it is; in no order.
SELECT centile_store.create_bucket_function('bucket_keys_around',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_limit integer',
    'TABLE (is_above boolean, rank_key bigint, tie_key bigint, user_key bigint)',
    'RETURN QUERY
     (SELECT true, rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
      AND (rank_key, tie_key, user_key) > (p_rank_key, p_tie_key, p_user_key)
      ORDER BY rank_key, tie_key, user_key LIMIT p_limit)
     UNION ALL
     (SELECT false, rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
      AND (rank_key, tie_key, user_key) <= (p_rank_key, p_tie_key, p_user_key)
      ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT p_limit);');

COMMENT ON FUNCTION centile_store.bucket_keys_around(smallint, bigint, bigint, bigint, bigint, integer) IS
'Keys of a bucket around a key. Example: SELECT * FROM centile_store.bucket_keys_around(50::smallint, 1, 0, 0, 0, 3);';
