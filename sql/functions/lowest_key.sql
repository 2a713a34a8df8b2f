CREATE OR REPLACE FUNCTION centile_store.lowest_key(p_rank_key bigint) RETURNS centile_store.rank_key
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (p_rank_key, centile_store.key_min(), centile_store.key_min())::centile_store.rank_key;

COMMENT ON FUNCTION centile_store.lowest_key(bigint) IS
'The key below all players with a rank key. Example: SELECT centile_store.lowest_key(100);';
