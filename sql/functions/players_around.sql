CREATE OR REPLACE FUNCTION centile.players_around(p_board text, p_user text, p_period text DEFAULT NULL, p_around integer DEFAULT 4)
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, score bigint, reached_at timestamptz, tiebreak bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at, r.tiebreak
    FROM centile_store.source_named(p_board, p_period) s
    CROSS JOIN centile_store.user_named(p_user) AS u (id)
    -- Far below the largest integer, because both functions add to it.
    CROSS JOIN LATERAL (SELECT least(greatest(p_around, 0), 1000000000) AS around) n
    CROSS JOIN LATERAL (
        SELECT a.position, a.rank, a.user_id, a.user_name, a.score, a.reached_at, a.tiebreak
        FROM centile_store.rows_around(s.ranking_id, u.id, n.around) a
        UNION ALL
        SELECT a.position, a.rank, a.user_id, a.user_name, a.score, a.reached_at, a.tiebreak
        FROM centile_store.archive_around(s.archived_period_id, u.id, n.around) a) r
    ORDER BY r.position
$$;

COMMENT ON FUNCTION centile.players_around(text, text, text, integer) IS
'A player with the players above and below. p_period defaults to the default period of the board. Example: SELECT * FROM centile.players_around(''main'', ''ann'', ''all_time'', 2);';
GRANT EXECUTE ON FUNCTION centile.players_around(text, text, text, integer) TO centile_reader;
