CREATE OR REPLACE FUNCTION centile_store.rank_key_at(p_ranking_id bigint, p_period_id bigint, p_position bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN coalesce((SELECT (k.key).rank_key FROM centile_store.key_at(p_ranking_id, p_position) k),
                (SELECT r.rank_key FROM centile_store.archive_rows(p_period_id, p_position, 1) r));

COMMENT ON FUNCTION centile_store.rank_key_at(bigint, bigint, bigint) IS
'The rank key at a position of a ranking, or of the archive of a period. Example: SELECT centile_store.rank_key_at(1, NULL, 3);';
