-- A page of a ranking from any position, in one snapshot.
CREATE FUNCTION centile.page(p_board text, p_period text DEFAULT 'all_time', p_from bigint DEFAULT 1, p_limit integer DEFAULT 10)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, score bigint, reached_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at
    FROM centile_store.page_rows(centile_store.ranking_named(p_board, p_period), p_from, p_limit) r
$$;

COMMENT ON FUNCTION centile.page(text, text, bigint, integer) IS
'Players of a period from a position, best first. Example: SELECT * FROM centile.page(''main'', ''all_time'', 1, 3);';
GRANT EXECUTE ON FUNCTION centile.page(text, text, bigint, integer) TO centile_reader;
