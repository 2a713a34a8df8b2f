-- Like centile_store.periods_at, with the segments to which the player belongs. On a board of a
-- template, a period without a ranking has no entries of the board yet, or is closed.
CREATE OR REPLACE FUNCTION centile_store.player_periods_at(p_board centile_store.boards, p_user_id bigint, p_at timestamptz)
RETURNS TABLE (period_id bigint, kind text, period text, ranking_id bigint, is_cut_off boolean)
LANGUAGE sql STABLE
AS $$
    SELECT p.period_id, p.kind, p.period,
           CASE WHEN p_board.is_template AND p.ranking_id IS NOT NULL THEN centile_store.ranking_of(p_board.id, p.period_id) ELSE p.ranking_id END, p.is_cut_off
    FROM centile_store.periods_at(centile_store.owner_of(p_board.id), p_board.periods, p_at) p
    UNION ALL
    SELECT s.id, s.kind, centile_store.period_name(s.kind, s.label, s.segment), s.ranking_id, s.cut_off_at IS NOT NULL
    FROM centile_store.periods_at(p_board.id, p_board.periods, p_at) p
    JOIN centile_store.periods w ON w.id = p.period_id
    CROSS JOIN LATERAL centile_store.segments_at(p_board.id, p_user_id, w.ends_at) AS m (segment)
    JOIN centile_store.periods s ON s.board_id = w.board_id AND s.kind = w.kind AND s.label = w.label AND s.segment = m.segment
    WHERE p_board.segments <> '{}'
$$;

COMMENT ON FUNCTION centile_store.player_periods_at(centile_store.boards, bigint, timestamptz) IS
'The periods of a board that hold a time, and a player''s segments in them, with their current rankings. Example: SELECT p.period FROM centile_store.boards b CROSS JOIN LATERAL centile_store.player_periods_at(b, 1, ''2024-01-15 12:00Z'') p WHERE b.slug = ''main'';';
