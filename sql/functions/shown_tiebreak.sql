CREATE OR REPLACE FUNCTION centile_store.shown_tiebreak(p_tie_key bigint, p_tiebreak_order text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_tiebreak_order IS NOT NULL THEN centile.rank_key(p_tie_key, p_tiebreak_order) END;

COMMENT ON FUNCTION centile_store.shown_tiebreak(bigint, text) IS
'Second number of a standing; NULL on boards without ties second. Example: SELECT centile_store.shown_tiebreak(-61250, ''asc'');';
