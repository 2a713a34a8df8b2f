CREATE OR REPLACE FUNCTION centile.page(p_board text, p_period text DEFAULT NULL, p_from bigint DEFAULT 1, p_limit integer DEFAULT 10)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, score bigint, reached_at timestamptz, internal_id bigint, tiebreak bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at, r.internal_id, r.tiebreak
    FROM centile_store.source_named(p_board, p_period) s
    CROSS JOIN LATERAL (
        SELECT * FROM centile_store.page_rows(s.ranking_id, p_from, p_limit)
        UNION ALL
        SELECT * FROM centile_store.archive_rows(s.archived_period_id, p_from, CASE WHEN p_limit < 0 THEN 0 ELSE p_limit END)) r
    ORDER BY r.position
$$;

COMMENT ON FUNCTION centile.page(text, text, bigint, integer) IS
'Players of a period from a position, best first. internal_id is the user_id of archives. p_period defaults to the default period of the board. Example: SELECT * FROM centile.page(''main'', ''all_time'', 1, 3);';
GRANT EXECUTE ON FUNCTION centile.page(text, text, bigint, integer) TO centile_reader;
