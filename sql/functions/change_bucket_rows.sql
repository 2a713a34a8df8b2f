-- p_numbers: indexes into the arrays of changes. Updates begin at p_updates, deletions at p_deletes,
-- insertions at p_inserts; p_last ends them. Most scores leave the key in its bucket. If all do, a
-- plain UPDATE is faster than the statement with three parts.
SELECT centile_store.create_bucket_function('change_bucket_rows',
    'p_lane smallint, p_numbers integer[], p_updates integer, p_deletes integer, p_inserts integer, p_last integer,
     p_rankings bigint[], p_users bigint[], p_was_keys bigint[], p_was_ties bigint[], p_keys bigint[], p_ties bigint[]', 'bigint',
    'IF p_deletes > p_last THEN
        UPDATE %1$s b SET rank_key = p_keys[i], tie_key = p_ties[i] FROM unnest(p_numbers[p_updates : p_last]) AS i
        WHERE b.ranking_id = p_rankings[i] AND b.rank_key = p_was_keys[i] AND b.tie_key = p_was_ties[i] AND b.user_key = -p_users[i] AND b.lane = p_lane;
        GET DIAGNOSTICS v_count = ROW_COUNT;
     ELSE
        WITH updated AS (
            UPDATE %1$s b SET rank_key = p_keys[i], tie_key = p_ties[i] FROM unnest(p_numbers[p_updates : p_deletes - 1]) AS i
            WHERE b.ranking_id = p_rankings[i] AND b.rank_key = p_was_keys[i] AND b.tie_key = p_was_ties[i] AND b.user_key = -p_users[i] AND b.lane = p_lane
            RETURNING 1
        ), deleted AS (
            DELETE FROM %1$s b USING unnest(p_numbers[p_deletes : p_inserts - 1]) AS i
            WHERE b.ranking_id = p_rankings[i] AND b.rank_key = p_was_keys[i] AND b.tie_key = p_was_ties[i] AND b.user_key = -p_users[i] AND b.lane = p_lane
            RETURNING 1
        ), inserted AS (
            INSERT INTO %1$s (bucket, lane, ranking_id, rank_key, tie_key, user_key)
            SELECT p_bucket, p_lane, p_rankings[i], p_keys[i], p_ties[i], -p_users[i] FROM unnest(p_numbers[p_inserts : p_last]) AS i
        )
        SELECT (SELECT count(*) FROM updated) + (SELECT count(*) FROM deleted) INTO v_count;
     END IF;
     RETURN v_count;', 'VOLATILE');

COMMENT ON FUNCTION centile_store.change_bucket_rows(smallint, smallint, integer[], integer, integer, integer, integer, bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) IS
'Updates, deletes and inserts rows of a bucket, and returns the number of updated and deleted rows. Example: SELECT centile_store.change_bucket_rows(50::smallint, 0::smallint, ''{}'', 1, 1, 1, 0, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
