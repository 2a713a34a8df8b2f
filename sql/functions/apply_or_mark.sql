-- If a bucket row or count does not match, applies the changes ranking by ranking. Marks the rankings
-- that fail as damaged.
CREATE OR REPLACE FUNCTION centile_store.apply_or_mark(
    p_lane smallint, p_batch bigint, p_rankings bigint[], p_users bigint[], p_was_keys bigint[], p_was_ties bigint[], p_keys bigint[], p_ties bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_ranking record;
BEGIN
    PERFORM centile_store.apply_changes(p_lane, p_batch, p_rankings, p_users, p_was_keys, p_was_ties, p_keys, p_ties);
EXCEPTION WHEN SQLSTATE 'CB900' OR unique_violation OR check_violation OR data_exception THEN
    FOR v_ranking IN
        SELECT c.ranking_id AS id, array_agg(c.ranking_id) AS rankings, array_agg(c.user_id) AS users, array_agg(c.was_rank_key) AS was_keys,
               array_agg(c.was_tie_key) AS was_ties, array_agg(c.rank_key) AS keys, array_agg(c.tie_key) AS ties
        FROM unnest(p_rankings, p_users, p_was_keys, p_was_ties, p_keys, p_ties) AS c (ranking_id, user_id, was_rank_key, was_tie_key, rank_key, tie_key)
        GROUP BY c.ranking_id
    LOOP
        BEGIN
            PERFORM centile_store.apply_changes(p_lane, p_batch, v_ranking.rankings, v_ranking.users, v_ranking.was_keys, v_ranking.was_ties, v_ranking.keys, v_ranking.ties);
        EXCEPTION WHEN SQLSTATE 'CB900' OR unique_violation OR check_violation OR data_exception THEN
            RAISE WARNING 'ranking % is damaged: %', v_ranking.id, sqlerrm;
            UPDATE centile_store.rankings g SET damaged_at = clock_timestamp() WHERE g.id = v_ranking.id;
        END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.apply_or_mark(smallint, bigint, bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) IS
'Applies changed entries of a lane, and marks rankings whose bucket rows do not match them. Example: SELECT centile_store.apply_or_mark(0::smallint, 1, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
