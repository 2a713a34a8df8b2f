-- If no equal score lies below the bound, the bound is set below all equal scores. Shared ranks are
-- then counted in one bucket (see above_in_bucket).
CREATE OR REPLACE FUNCTION centile_store.bound_above(p_lower centile_store.rank_key, p_upper centile_store.rank_key) RETURNS centile_store.rank_key
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ((p_upper).rank_key,
        CASE WHEN (p_lower).rank_key = (p_upper).rank_key THEN (p_upper).tie_key ELSE centile_store.key_min() END,
        CASE WHEN ((p_lower).rank_key, (p_lower).tie_key) = ((p_upper).rank_key, (p_upper).tie_key)
             THEN (p_upper).user_key ELSE centile_store.key_min() END)::centile_store.rank_key;

COMMENT ON FUNCTION centile_store.bound_above(centile_store.rank_key, centile_store.rank_key) IS
'The lower bound of a bucket that begins at the upper of two keys. Example: SELECT centile_store.bound_above((99, 7, -1), (100, 5, -2));';
