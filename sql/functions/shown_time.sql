-- A board with a tiebreak_order has ties `second`: its tie keys hold numbers, and no times.
CREATE OR REPLACE FUNCTION centile_store.shown_time(p_tie_key bigint, p_tiebreak_order text) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN p_tiebreak_order IS NULL THEN centile.tie_key_time(p_tie_key) END;

COMMENT ON FUNCTION centile_store.shown_time(bigint, text) IS
'Time at which a score was reached; NULL on boards with ties second. Example: SELECT centile_store.shown_time(centile.tie_key(''2024-01-15 12:00Z''), NULL);';
