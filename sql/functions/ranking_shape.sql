-- The next period of the kind begins with these bounds.
CREATE OR REPLACE FUNCTION centile_store.ranking_shape(p_ranking_id bigint) RETURNS bigint[]
LANGUAGE sql STABLE
RETURN ARRAY(
    SELECT DISTINCT u.rank_key FROM centile_store.rankings g CROSS JOIN unnest(g.low_rank_keys) AS u (rank_key)
    WHERE g.id = p_ranking_id AND u.rank_key > centile_store.key_min() AND u.rank_key < centile_store.key_max()
    ORDER BY u.rank_key);

COMMENT ON FUNCTION centile_store.ranking_shape(bigint) IS
'Rank keys at which the buckets of a ranking begin. Example: SELECT centile_store.ranking_shape(1);';
