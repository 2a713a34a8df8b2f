-- p_wanted: true for a player who moves: the segments follow from the user's attributes, as they do
-- for a player who is new to the board. Otherwise they are the recorded ones at the end of each
-- period. p_with_closed: true for a correction, which also counts in closed periods that have an
-- archive.
CREATE OR REPLACE FUNCTION centile_store.missing_segments(p_board centile_store.boards, p_user_id bigint, p_at timestamptz, p_wanted boolean DEFAULT false, p_with_closed boolean DEFAULT false)
RETURNS TABLE (period_id bigint, segment text)
LANGUAGE sql STABLE
AS $$
    SELECT w.id, m.segment
    FROM (SELECT p_wanted OR NOT centile_store.is_known(p_board.id, p_user_id) AS is_wanted) x
    CROSS JOIN LATERAL centile_store.periods_at(p_board.id, p_board.periods, p_at) p
    JOIN centile_store.periods w ON w.id = p.period_id
        AND (w.ranking_id IS NOT NULL AND w.cut_off_at IS NULL OR p_with_closed AND w.frozen_top IS NOT NULL)
    CROSS JOIN LATERAL (
        SELECT s.segment FROM centile_store.wanted_segments(p_board, p_user_id) AS s (segment) WHERE x.is_wanted
        UNION ALL
        SELECT s.segment FROM centile_store.segments_at(p_board.id, p_user_id, w.ends_at) AS s (segment) WHERE NOT x.is_wanted) m
    WHERE p_board.segments <> '{}'
      AND NOT EXISTS (SELECT FROM centile_store.periods s
                      WHERE s.board_id = w.board_id AND s.kind = w.kind AND s.label = w.label AND s.segment = m.segment)
$$;

COMMENT ON FUNCTION centile_store.missing_segments(centile_store.boards, bigint, timestamptz, boolean, boolean) IS
'Segments that a player needs in the open periods that hold a time, and that are not opened yet. Example: SELECT m.segment FROM centile_store.boards b CROSS JOIN LATERAL centile_store.missing_segments(b, 1, now()) m WHERE b.slug = ''main'';';
