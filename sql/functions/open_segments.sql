-- p_period_ids, p_segments: pairs of a whole period and a segment. Skips pairs that exist, and periods
-- that accept no more scores. p_with_closed: also opens segments of closed periods with an archive.
-- Such a segment is due at once, and is closed as of the cut-off of the whole period. Takes the
-- structure lock exclusively: call it before taking any other lock.
CREATE OR REPLACE FUNCTION centile_store.open_segments(p_board_id integer, p_period_ids bigint[], p_segments text[], p_with_closed boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_segment   record;
    v_period_id bigint;
    v_opened    integer := 0;
BEGIN
    PERFORM centile_store.lock_for_opening(p_board_id);
    FOR v_segment IN
        SELECT DISTINCT w.kind, w.label, w.starts_at, w.ends_at, x.segment
        FROM unnest(p_period_ids, p_segments) AS x (period_id, segment)
        JOIN centile_store.periods w ON w.id = x.period_id AND w.board_id = p_board_id
            AND (w.ranking_id IS NOT NULL AND w.cut_off_at IS NULL OR p_with_closed AND w.frozen_top IS NOT NULL)
        WHERE NOT EXISTS (SELECT FROM centile_store.periods s
                          WHERE s.board_id = w.board_id AND s.kind = w.kind AND s.label = w.label AND s.segment = x.segment)
        ORDER BY w.starts_at, w.kind, x.segment
    LOOP
        INSERT INTO centile_store.periods (board_id, kind, label, segment, starts_at, ends_at, state)
        VALUES (p_board_id, v_segment.kind, v_segment.label, v_segment.segment, v_segment.starts_at, v_segment.ends_at, 'closed')
        RETURNING id INTO v_period_id;
        UPDATE centile_store.periods SET state = 'open', ranking_id = centile_store.create_ranking(p_board_id, v_period_id) WHERE id = v_period_id;
        v_opened := v_opened + 1;
    END LOOP;
    -- On a cluster, lock_for_opening sets it.
    PERFORM set_config('centile.left_out', '', true);
    RETURN v_opened;
END
$$;

COMMENT ON FUNCTION centile_store.open_segments(integer, bigint[], text[], boolean) IS
'Opens the rankings of segments in periods of a board, and returns their number. Example: SELECT centile_store.open_segments(1, ''{}'', ''{}'');';
