-- The rank of a key by the board's rule for ties.
CREATE OR REPLACE FUNCTION centile_store.rank_of_key(p_ranking_id bigint, p_shared boolean, p_rank_key bigint, p_tie_key bigint, p_user_key bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN 1 + CASE WHEN p_shared
    THEN centile_store.count_above(p_ranking_id, p_rank_key, 9223372036854775807, 9223372036854775807)
    ELSE centile_store.count_above(p_ranking_id, p_rank_key, p_tie_key, p_user_key) END;

COMMENT ON FUNCTION centile_store.rank_of_key(bigint, boolean, bigint, bigint, bigint) IS
'Rank of a key, shared among equal scores or not. Example: SELECT centile_store.rank_of_key(1, true, 100, 0, 0);';
