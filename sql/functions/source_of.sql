CREATE OR REPLACE FUNCTION centile_store.source_of(p_ranking_id bigint, p_period_id bigint)
RETURNS TABLE (players bigint, score_order text, ties text)
LANGUAGE sql STABLE
AS $$
    SELECT centile_store.player_count(g.id), b.score_order, b.ties
    FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id WHERE g.id = p_ranking_id
    UNION ALL
    SELECT a.players, a.score_order, a.ties FROM centile_store.archive_of(p_period_id) a
$$;

COMMENT ON FUNCTION centile_store.source_of(bigint, bigint) IS
'Players and rules of a ranking, or of the archive of a period; the other argument is NULL. Example: SELECT * FROM centile_store.source_of(1, NULL);';
