-- For corrections and accepted events, which may be the first score of a player. The caller holds
-- the lane's lock and writes its next batch. p_with_closed: see centile_store.missing_segments.
CREATE OR REPLACE FUNCTION centile_store.join_segments(p_board centile_store.boards, p_lane centile_store.board_lanes, p_user_id bigint, p_at timestamptz, p_with_closed boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_board.segments = '{}' THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM centile_store.missing_segments(p_board, p_user_id, p_at, p_with_closed => p_with_closed)) THEN
        RAISE EXCEPTION 'a segment of board % has to be opened first', p_board.slug USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    PERFORM centile_store.record_segments(p_lane, array_agg(p_user_id), array_agg(s.segment))
    FROM (SELECT '' AS segment UNION ALL SELECT w.segment FROM centile_store.wanted_segments(p_board, p_user_id) AS w (segment)) s
    WHERE NOT centile_store.is_known(p_board.id, p_user_id);
END
$$;

COMMENT ON FUNCTION centile_store.join_segments(centile_store.boards, centile_store.board_lanes, bigint, timestamptz, boolean) IS
'Records the segments of a player who is new to a board. Example: SELECT centile_store.join_segments(b, centile_store.lock_lane(b, ''ann''), 1, now()) FROM centile_store.boards b WHERE b.slug = ''main'';';
