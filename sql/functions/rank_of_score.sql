-- A newcomer stands behind equals, except where they share a rank.
CREATE OR REPLACE FUNCTION centile.rank_of_score(p_board text, p_score bigint, p_period text DEFAULT NULL) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
RETURN (SELECT 1 + coalesce(centile_store.newcomers_above(s.ranking_id, s.archived_period_id, p_score), 0)
        FROM centile_store.source_named(p_board, p_period) s);

COMMENT ON FUNCTION centile.rank_of_score(text, bigint, text) IS
'The rank that a newcomer with this score would have. p_period defaults to the default period of the board. Example: SELECT centile.rank_of_score(''main'', 100), centile.rank_of_score(''main'', 150) AS equal_to_the_best;';
GRANT EXECUTE ON FUNCTION centile.rank_of_score(text, bigint, text) TO centile_reader;
