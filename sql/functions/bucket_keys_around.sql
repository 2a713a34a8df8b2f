-- Up to p_above keys above a key, worst first, then up to p_below at and below it, best first.
SELECT centile_store.create_bucket_function('bucket_keys_around',
    'p_ranking_id bigint, p_key centile_store.rank_key, p_above integer, p_below integer',
    'TABLE (is_above boolean, rank_key bigint, tie_key bigint, user_key bigint)',
    'RETURN QUERY
     (SELECT true, rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
      AND (rank_key, tie_key, user_key) > (p_key.rank_key, p_key.tie_key, p_key.user_key)
      ORDER BY rank_key, tie_key, user_key LIMIT p_above)
     UNION ALL
     (SELECT false, rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
      AND (rank_key, tie_key, user_key) <= (p_key.rank_key, p_key.tie_key, p_key.user_key)
      ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT p_below);');

COMMENT ON FUNCTION centile_store.bucket_keys_around(smallint, bigint, centile_store.rank_key, integer, integer) IS
'Keys of a bucket around a key. Example: SELECT * FROM centile_store.bucket_keys_around(50::smallint, 1, (0, 0, 0), 3, 3);';
