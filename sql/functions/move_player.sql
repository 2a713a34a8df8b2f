-- The service calls this for every board with segments after a change of attributes, and may call
-- it again. A banned player has no entries to move. Periods that have ended keep their players.
CREATE OR REPLACE FUNCTION centile_store.move_player(p_board text, p_user_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board);
    v_lane  centile_store.board_lanes;
    v_at    timestamptz;
    v_were  text[];
    v_are   text[];
    v_moved text[];
BEGIN
    IF v_board.segments = '{}' THEN
        RETURN false;
    END IF;
    SELECT greatest(clock_timestamp(), max(l.last_at)) INTO v_at FROM centile_store.board_lanes l WHERE l.board_id = v_board.id;
    -- Takes the structure lock exclusively, so it comes before the lane's lock.
    PERFORM centile_store.open_segments(v_board.id, array_agg(m.period_id), array_agg(m.segment))
    FROM centile_store.missing_segments(v_board, p_user_id, v_at, true) m
    WHERE centile_store.is_known(v_board.id, p_user_id) HAVING count(*) > 0;
    SELECT l.* INTO v_lane FROM centile_store.users u, centile_store.lock_lane(v_board, u.external_id) l WHERE u.id = p_user_id;
    -- Its segments may have changed before the lock.
    v_board := centile_store.board_named(p_board);
    IF NOT centile_store.is_known(v_board.id, p_user_id) THEN
        -- A batch with the player's first score may have read the old attributes. This makes it
        -- start again.
        PERFORM centile_store.write_act(v_board.id, v_lane, v_lane.last_at, p_user_id, '{}');
        RETURN false;
    END IF;
    v_were := ARRAY(SELECT centile_store.segments_at(v_board.id, p_user_id));
    v_are := ARRAY(SELECT centile_store.wanted_segments(v_board, p_user_id));
    v_moved := ARRAY(SELECT unnest(v_were) EXCEPT SELECT unnest(v_are)) || ARRAY(SELECT unnest(v_are) EXCEPT SELECT unnest(v_were));
    IF v_moved = '{}' THEN
        RETURN false;
    END IF;
    v_at := greatest(clock_timestamp(), v_lane.last_at);
    IF EXISTS (SELECT FROM centile_store.missing_segments(v_board, p_user_id, v_at, true)) THEN
        RAISE EXCEPTION 'a segment of board % has to be opened first', p_board USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    INSERT INTO centile_store.segment_members (board_id, user_id, segment, lane, batch, changed_at, is_member)
    SELECT v_board.id, p_user_id, s.segment, v_lane.lane, v_lane.batch + 1, v_at, s.segment = ANY (v_are)
    FROM unnest(v_moved) AS s (segment);
    -- The player has the same entry in a segment as in the whole period.
    PERFORM centile_store.write_act(v_board.id, v_lane, v_at, p_user_id, ARRAY(
        SELECT (s.ranking_id, p_user_id, CASE WHEN s.segment = ANY (v_were) THEN l.rank_key END, CASE WHEN s.segment = ANY (v_were) THEN l.tie_key END,
                CASE WHEN s.segment = ANY (v_are) THEN l.rank_key END, CASE WHEN s.segment = ANY (v_are) THEN l.tie_key END, l.only_zeros)::centile_store.entry_change
        FROM centile_store.periods_at(v_board.id, v_board.periods, v_at) p
        JOIN centile_store.periods w ON w.id = p.period_id
        JOIN centile_store.periods s ON s.board_id = w.board_id AND s.kind = w.kind AND s.label = w.label AND s.segment = ANY (v_moved)
        JOIN centile_store.leaderboard l ON l.ranking_id = w.ranking_id AND l.user_id = p_user_id
        WHERE s.ranking_id IS NOT NULL));
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.move_player(text, bigint) IS
'Moves a player to the segments of the current attributes in the open periods of a board, and returns whether anything changed. Example: SELECT centile_store.move_player(''main'', 1);';
