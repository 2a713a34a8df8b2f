CREATE OR REPLACE FUNCTION centile.player_rank(p_board text, p_user text, p_period text DEFAULT NULL)
RETURNS TABLE (rank bigint, "position" bigint, score bigint, percentile double precision, players bigint, reached_at timestamptz, tier text, tiebreak bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.rank, p.position, p.score, 100.0 * p.worse / greatest(o.players - 1, 1), o.players, p.reached_at,
           centile.tier_of(coalesce((SELECT c.tiers FROM centile_store.periods c WHERE c.id = centile_store.closed_period(s.archived_period_id)),
                                    (centile_store.board_named(p_board)).tiers), o.score_order, p.score, p.rank, o.players), p.tiebreak
    FROM centile_store.source_named(p_board, p_period) s
    CROSS JOIN centile_store.user_named(p_user) AS u (id)
    CROSS JOIN LATERAL centile_store.source_of(s.ranking_id, s.archived_period_id) o
    CROSS JOIN LATERAL (
        SELECT l.rank, l.position, l.score, l.worse, l.reached_at, l.tiebreak FROM centile_store.player_row(s.ranking_id, u.id) l
        UNION ALL
        SELECT a.rank, a.position, a.score, a.worse, a.reached_at, a.tiebreak
        FROM centile_store.archive_players(s.archived_period_id, ARRAY[u.id]) a) p
$$;

COMMENT ON FUNCTION centile.player_rank(text, text, text) IS
'Rank, position, percentile and tier of a player in a period. p_period defaults to the default period of the board. Example: SELECT * FROM centile.player_rank(''main'', ''ann'', ''week:2024-01-15'');';
GRANT EXECUTE ON FUNCTION centile.player_rank(text, text, text) TO centile_reader;
