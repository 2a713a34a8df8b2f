-- One player's standing, in one snapshot.
CREATE FUNCTION centile.player_rank(p_board text, p_user text, p_period text DEFAULT 'all_time')
RETURNS TABLE (rank bigint, "position" bigint, score bigint, percentile double precision, players bigint, reached_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.rank, p.position, p.score, 100.0 * p.worse / greatest(c.players - 1, 1), c.players, p.reached_at
    FROM centile_store.ranking_named(p_board, p_period) AS g (id)
    CROSS JOIN LATERAL centile_store.player_row(g.id, centile_store.user_named(p_user)) p
    CROSS JOIN LATERAL centile_store.player_count(g.id) AS c (players)
$$;

COMMENT ON FUNCTION centile.player_rank(text, text, text) IS
'Rank, position and percentile of a player in a period. Example: SELECT * FROM centile.player_rank(''main'', ''ann'', ''week:2024-01-15'');';
GRANT EXECUTE ON FUNCTION centile.player_rank(text, text, text) TO centile_reader;
