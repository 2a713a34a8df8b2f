-- Removes those rows of a bucket whose sign is -1 and adds those whose sign is 1; returns how many it removed.
SELECT centile_store.create_bucket_function('replace_rows',
    'p_ranking_ids bigint[], p_rank_keys bigint[], p_tie_keys bigint[], p_user_keys bigint[], p_signs smallint[]', 'bigint',
    'DELETE FROM %1$s b
     USING unnest(p_ranking_ids, p_rank_keys, p_tie_keys, p_user_keys, p_signs) AS k (ranking_id, rank_key, tie_key, user_key, sign)
     WHERE k.sign < 0 AND b.ranking_id = k.ranking_id AND b.rank_key = k.rank_key AND b.tie_key = k.tie_key AND b.user_key = k.user_key;
     GET DIAGNOSTICS v_count = ROW_COUNT;
     INSERT INTO %1$s (bucket, ranking_id, rank_key, tie_key, user_key)
     SELECT p_bucket, k.ranking_id, k.rank_key, k.tie_key, k.user_key
     FROM unnest(p_ranking_ids, p_rank_keys, p_tie_keys, p_user_keys, p_signs) AS k (ranking_id, rank_key, tie_key, user_key, sign)
     WHERE k.sign > 0;
     RETURN v_count;', 'VOLATILE');

COMMENT ON FUNCTION centile_store.replace_rows(smallint, bigint[], bigint[], bigint[], bigint[], smallint[]) IS
'Removes rows of a bucket and adds others. Example: SELECT * FROM centile_store.replace_rows(50::smallint, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
