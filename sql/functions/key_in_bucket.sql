-- The key that follows p_skipped keys from the upper or the lower end of a bucket.
SELECT centile_store.create_bucket_function('key_in_bucket',
    'p_ranking_id bigint, p_skipped bigint, p_from_below boolean', 'SETOF centile_store.rank_key',
    'IF p_from_below THEN
        RETURN QUERY SELECT rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
        ORDER BY rank_key, tie_key, user_key OFFSET p_skipped LIMIT 1;
    ELSE
        RETURN QUERY SELECT rank_key, tie_key, user_key FROM %1$s WHERE ranking_id = p_ranking_id
        ORDER BY rank_key DESC, tie_key DESC, user_key DESC OFFSET p_skipped LIMIT 1;
    END IF;');

COMMENT ON FUNCTION centile_store.key_in_bucket(smallint, bigint, bigint, boolean) IS
'A key of a bucket by the number of those above or below it. Example: SELECT * FROM centile_store.key_in_bucket(50::smallint, 1, 0, false);';
