-- One statement deletes the rows p_deletes to p_inserts - 1 of the arrays, and inserts the rows
-- p_inserts to p_last.
SELECT centile_store.create_bucket_function('replace_rows',
    'p_lane smallint, p_deletes integer, p_inserts integer, p_last integer,
     p_ranking_ids bigint[], p_rank_keys bigint[], p_tie_keys bigint[], p_user_keys bigint[]', 'bigint',
    'WITH gone AS (
        DELETE FROM %1$s b USING generate_series(p_deletes, p_inserts - 1) AS i
        WHERE b.ranking_id = p_ranking_ids[i] AND b.rank_key = p_rank_keys[i] AND b.tie_key = p_tie_keys[i] AND b.user_key = p_user_keys[i]
        RETURNING 1
     ), placed AS (
        INSERT INTO %1$s (bucket, lane, ranking_id, rank_key, tie_key, user_key)
        SELECT p_bucket, p_lane, p_ranking_ids[i], p_rank_keys[i], p_tie_keys[i], p_user_keys[i] FROM generate_series(p_inserts, p_last) AS i
     )
     SELECT count(*) INTO v_count FROM gone;
     RETURN v_count;', 'VOLATILE');

COMMENT ON FUNCTION centile_store.replace_rows(smallint, smallint, integer, integer, integer, bigint[], bigint[], bigint[], bigint[]) IS
'Deletes rows of a bucket and inserts others, and returns the number of deleted rows. Example: SELECT centile_store.replace_rows(50::smallint, 0::smallint, 1, 1, 0, ''{}'', ''{}'', ''{}'', ''{}'');';
