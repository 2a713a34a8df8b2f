-- p_wanted: by the user's attributes, for a player who moves. A player whom the board does not know
-- stands in the segments of the attributes, too. p_with_closed: also in closed periods with an archive,
-- for a correction.
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
'Segments without a ranking that a player needs in the open periods that hold a time. Example: SELECT m.segment FROM centile_store.boards b CROSS JOIN LATERAL centile_store.missing_segments(b, 1, now()) m WHERE b.slug = ''main'';';
