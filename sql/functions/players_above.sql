CREATE OR REPLACE FUNCTION centile_store.players_above(p_ranking_id bigint, p_period_id bigint, p_keys centile_store.rank_key[]) RETURNS bigint[]
LANGUAGE sql STABLE
RETURN CASE WHEN p_ranking_id IS NULL THEN centile_store.archive_above(p_period_id, p_keys)
            ELSE ARRAY(SELECT centile_store.count_above(p_ranking_id, p_keys[n]) FROM generate_subscripts(p_keys, 1) AS n ORDER BY n) END;

COMMENT ON FUNCTION centile_store.players_above(bigint, bigint, centile_store.rank_key[]) IS
'Players above each of these keys, in a ranking or the archive of a period. Example: SELECT centile_store.players_above(1, NULL, ARRAY[centile_store.lowest_key(100)]);';
