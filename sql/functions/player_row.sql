-- "worse" gives the percentile.
CREATE OR REPLACE FUNCTION centile_store.player_row(p_ranking_id bigint, p_user_id bigint)
RETURNS TABLE ("position" bigint, rank bigint, worse bigint, user_id text, user_name text, avatar text, score bigint, reached_at timestamptz,
               rank_key bigint, tie_key bigint, tiebreak bigint)
LANGUAGE sql STABLE
AS $$
    SELECT p.position,
           CASE WHEN b.ties = 'shared' THEN 1 + centile_store.count_above(g.id, centile_store.highest_key(l.rank_key)) ELSE p.position END,
           p.players - CASE WHEN b.ties = 'shared' THEN centile_store.count_above(g.id, centile_store.lowest_key(l.rank_key)) ELSE p.position END,
           u.external_id, u.name, u.avatar, centile.rank_key(l.rank_key, b.score_order), centile_store.shown_time(l.tie_key, b.tiebreak_order),
           l.rank_key, l.tie_key, centile_store.shown_tiebreak(l.tie_key, b.tiebreak_order)
    FROM centile_store.rankings g
    JOIN centile_store.boards b ON b.id = g.board_id
    JOIN centile_store.users u ON u.id = p_user_id
    JOIN LATERAL centile_store.applied_key(g.id, u.id) l ON l.rank_key IS NOT NULL
    CROSS JOIN LATERAL (
        SELECT 1 + centile_store.count_above(g.id, (l.rank_key, l.tie_key, -u.id)::centile_store.rank_key) AS position,
               centile_store.player_count(g.id) AS players) p
    WHERE g.id = p_ranking_id
$$;

COMMENT ON FUNCTION centile_store.player_row(bigint, bigint) IS
'A player''s position, rank and number of worse players in a ranking. Example: SELECT * FROM centile_store.player_row(1, 1);';
