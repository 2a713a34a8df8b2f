CREATE OR REPLACE FUNCTION centile_store.rank_of_key(p_ranking_id bigint, p_shared boolean, p_key centile_store.rank_key) RETURNS bigint
LANGUAGE sql STABLE
RETURN 1 + centile_store.count_above(p_ranking_id, CASE WHEN p_shared THEN centile_store.highest_key((p_key).rank_key) ELSE p_key END);

COMMENT ON FUNCTION centile_store.rank_of_key(bigint, boolean, centile_store.rank_key) IS
'Rank of a key, shared among equal scores or not. Example: SELECT centile_store.rank_of_key(1, true, (100, 0, 0));';
