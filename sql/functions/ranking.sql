-- SECURITY DEFINER, because archives belong to the owner. For a few rows call centile.page. Archives
-- have no names of players, because names change, and an erasure would have to compute each archive
-- again. So names and ids are looked up here.
CREATE OR REPLACE FUNCTION centile.ranking(p_board text, p_period text DEFAULT NULL)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, score bigint, reached_at timestamptz, internal_id bigint, tiebreak bigint)
LANGUAGE sql STABLE ROWS 100000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.* FROM centile.page(p_board, p_period, 1, 2147483647) p
$$;

COMMENT ON FUNCTION centile.ranking(text, text) IS
'All players of a period, open or closed, best first. internal_id is the user_id of archives. p_period defaults to the default period of the board. Example: SELECT * FROM centile.ranking(''main'', ''week:2024-01-15'');';
GRANT EXECUTE ON FUNCTION centile.ranking(text, text) TO centile_reader;
