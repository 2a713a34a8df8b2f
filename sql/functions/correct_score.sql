-- In open periods the score counts at once. Archives of closed periods include it after their next
-- refresh. The board's limits for points do not apply.
CREATE OR REPLACE FUNCTION centile.correct_score(p_board text, p_user text, p_points bigint, p_at timestamptz, p_reason text, p_actor text,
    p_tiebreak bigint DEFAULT NULL, OUT transaction_id bigint, OUT to_refresh text[])
LANGUAGE plpgsql VOLATILE
SET timezone = 'UTC'
AS $$
#variable_conflict use_column
DECLARE
    v_board    centile_store.boards := centile_store.board_named(p_board);
    v_user_id  bigint := centile_store.user_named(p_user);
    v_lane     centile_store.board_lanes;
    v_rankings bigint[];
    v_closed   bigint[];
    v_closing  text;
    v_missing  boolean;
BEGIN
    PERFORM centile_store.check_written(v_board);
    IF p_reason IS NULL OR p_actor IS NULL THEN
        RAISE EXCEPTION 'a correction needs a reason and an actor' USING ERRCODE = 'CB422', DETAIL = CASE WHEN p_reason IS NULL THEN 'reason' ELSE 'by' END;
    ELSIF p_tiebreak IS NOT NULL AND v_board.ties NOT IN ('tiebreak', 'second') THEN
        RAISE EXCEPTION 'board % does not use tiebreaks', p_board USING ERRCODE = 'CB422', DETAIL = 'tiebreak';
    ELSIF p_tiebreak = centile_store.key_min() OR v_board.ties = 'tiebreak' AND p_tiebreak NOT BETWEEN -2048 AND 2047 THEN
        RAISE EXCEPTION 'must be from %', CASE v_board.ties WHEN 'second' THEN '-9223372036854775807 to 9223372036854775807' ELSE '-2048 to 2047' END
            USING ERRCODE = 'CB422', DETAIL = 'tiebreak';
    ELSIF p_points IS NULL OR p_points = centile_store.key_min() THEN
        RAISE EXCEPTION 'points are missing or below the lowest score' USING ERRCODE = 'CB422', DETAIL = 'points';
    ELSIF p_at IS NULL OR p_at > clock_timestamp() OR p_at < '2000-01-01 00:00:00+00' THEN
        RAISE EXCEPTION 'the time must lie between 2000 and now' USING ERRCODE = 'CB422', DETAIL = 'at';
    END IF;
    PERFORM centile.ensure_ledger_months(p_at, p_at);
    -- Takes the structure lock exclusively, so it comes before the lane's lock.
    PERFORM centile_store.open_periods(centile_store.owner_of(v_board.id), ARRAY[p_at]);
    -- Its segments may have changed before the lock.
    v_board := centile_store.board_named(p_board);
    PERFORM centile_store.open_segments(v_board.id, array_agg(m.period_id), array_agg(m.segment), true)
    FROM centile_store.missing_segments(v_board, v_user_id, p_at, p_with_closed => true) m HAVING count(*) > 0;
    v_lane := centile_store.lock_lane(v_board, p_user);
    PERFORM centile_store.require_rankings(v_board, v_lane.board_id, p_at);

    IF EXISTS (SELECT FROM centile_store.users u WHERE u.id = v_user_id AND u.banned_at IS NOT NULL)
       OR EXISTS (SELECT FROM centile_store.players b WHERE b.board_id = v_board.id AND b.user_id = v_user_id AND b.banned) THEN
        RAISE EXCEPTION 'player % is banned', quote_literal(p_user) USING ERRCODE = 'CB409', DETAIL = 'user_banned';
    END IF;
    PERFORM centile_store.join_segments(v_board, v_lane, v_user_id, p_at, true);
    SELECT array_agg(p.ranking_id) FILTER (WHERE p.ranking_id IS NOT NULL),
           array_agg(p.period ORDER BY p.period) FILTER (
               WHERE EXISTS (SELECT FROM centile_store.periods a WHERE a.id = p.period_id AND a.segment = '' AND a.frozen_top IS NOT NULL)),
           array_agg(p.period_id) FILTER (WHERE p.ranking_id IS NULL),
           min(p.period) FILTER (
               WHERE p.is_cut_off AND EXISTS (SELECT FROM centile_store.periods o WHERE o.id = p.period_id AND o.state = 'open')),
           count(DISTINCT p.kind) FILTER (WHERE p.kind = ANY (v_board.periods)) < cardinality(v_board.periods)
    INTO v_rankings, to_refresh, v_closed, v_closing, v_missing
    FROM centile_store.player_periods_at(v_board, v_user_id, p_at) p;
    IF v_missing THEN
        -- A worker of a cluster may lack a period that was opened while it was down.
        RAISE EXCEPTION 'the server lacks a period of board %', p_board USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    IF v_closing IS NOT NULL THEN
        RAISE EXCEPTION 'period % of board % is being closed', v_closing, p_board
            USING ERRCODE = 'CB409', HINT = 'Wait until centile close has ended.';
    END IF;

    INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, tiebreak, second_number, reason, occurred_at, lane, batch)
    VALUES (v_board.id, v_user_id, 'score', p_points, CASE v_board.ties WHEN 'tiebreak' THEN p_tiebreak END, CASE v_board.ties WHEN 'second' THEN p_tiebreak END, p_reason, p_at, v_lane.lane, v_lane.batch + 1)
    RETURNING id INTO transaction_id;
    PERFORM centile_store.write_act(v_board.id, v_lane, p_at, v_user_id, centile_store.entry_changes(v_rankings, ARRAY[v_user_id]));

    PERFORM centile_store.mark_corrected(v_closed, v_board.id);
    PERFORM centile_store.check_sum(v_board, v_user_id, p_at, p_points, p_tiebreak);
    PERFORM centile_store.note_act(p_actor, 'correct', v_board.id, NULL, jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', transaction_id, 'points', p_points, 'tiebreak', p_tiebreak, 'at', p_at, 'reason', p_reason)), NULL, v_user_id);
END
$$;

COMMENT ON FUNCTION centile.correct_score(text, text, bigint, timestamptz, text, text, bigint) IS
'Adds a score at a past time, and returns the closed periods whose archives need a refresh. Example: SELECT to_refresh FROM centile.correct_score(''main'', ''ann'', -20, ''2024-01-16 12:00Z'', ''counted twice'', ''dora'');';
