-- Counts rows of a bucket for the rank of a key, from the upper end down or from the lower end up.
--
-- From the upper end: rows with a better rank key, rows above the key, and rows with the rank key
-- or a better one. From the lower end: rows without a better rank key, rows not above the key, and
-- rows with a worse rank key.
--
-- p_with_equals: begin with all rows of the rank key. Otherwise only the second number is right.
--
-- The subquery of the first form makes the scan begin at the key and go down. A scan upwards would
-- pass all rows of the rank key, since it ends by the first column alone. The key comes as three
-- numbers: plpgsql takes longer to read a field of a record, and would do so for each row.
SELECT centile_store.create_bucket_function('count_in_bucket',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_with_equals boolean, p_from_below boolean', 'bigint[]',
    'IF p_from_below THEN
        RETURN (SELECT ARRAY[count(*),
                             count(*) - count(*) FILTER (WHERE b.rank_key = p_rank_key AND (b.tie_key, b.user_key) > (p_tie_key, p_user_key)),
                             count(*) - count(*) FILTER (WHERE b.rank_key = p_rank_key)]
                FROM (SELECT rank_key, tie_key, user_key FROM %1$s
                      WHERE ranking_id = p_ranking_id AND (rank_key, tie_key, user_key) <=
                            (p_rank_key, CASE WHEN p_with_equals THEN centile_store.key_max() ELSE p_tie_key END,
                                         CASE WHEN p_with_equals THEN centile_store.key_max() ELSE p_user_key END)
                      ORDER BY rank_key DESC, tie_key DESC, user_key DESC) b);
    END IF;
    RETURN (SELECT ARRAY[count(*) - count(*) FILTER (WHERE rank_key = p_rank_key),
                         count(*) - count(*) FILTER (WHERE rank_key = p_rank_key AND (tie_key, user_key) <= (p_tie_key, p_user_key)),
                         count(*)]
            FROM %1$s
            WHERE ranking_id = p_ranking_id AND (rank_key, tie_key, user_key) >=
                  (p_rank_key, CASE WHEN p_with_equals THEN centile_store.key_min() ELSE p_tie_key END,
                               CASE WHEN p_with_equals THEN centile_store.key_min() ELSE p_user_key END));');

COMMENT ON FUNCTION centile_store.count_in_bucket(smallint, bigint, bigint, bigint, bigint, boolean, boolean) IS
'Rows of a bucket above or below a key. Example: SELECT centile_store.count_in_bucket(50::smallint, 1, 0, 0, 0, true, false);';
