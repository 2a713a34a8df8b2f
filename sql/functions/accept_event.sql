-- The event gets the current time and counts in the current periods, whatever rules it breaks and
-- even if the player was reset meanwhile. Repeating the call returns the same id.
CREATE OR REPLACE FUNCTION centile.accept_event(p_board text, p_quarantine_id bigint, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board    centile_store.boards := centile_store.board_named(p_board);
    v_event    centile_store.quarantine;
    v_lane     centile_store.board_lanes;
    v_at       timestamptz;
    v_rankings bigint[];
    v_missing  boolean;
    v_owner    integer := centile_store.owner_of(v_board.id);
BEGIN
    PERFORM centile.ensure_ledger_months(now(), now());
    v_event := centile_store.quarantined(v_board, p_quarantine_id);
    SELECT greatest(clock_timestamp(), max(l.last_at)) INTO v_at FROM centile_store.board_lanes l WHERE l.board_id = v_owner;
    IF (SELECT count(*) FROM centile_store.periods_at(v_owner, v_board.periods, v_at) p WHERE p.kind = ANY (v_board.periods)) < cardinality(v_board.periods) THEN
        PERFORM centile_store.open_periods(v_owner, ARRAY[v_at]);
    END IF;
    PERFORM centile_store.open_segments(v_board.id, array_agg(m.period_id), array_agg(m.segment))
    FROM centile_store.missing_segments(v_board, v_event.user_id, v_at) m HAVING count(*) > 0;
    SELECT l.* INTO v_lane FROM centile_store.users u, centile_store.lock_lane(v_board, u.external_id) l WHERE u.id = v_event.user_id;
    -- Another session may have decided before this one locked the lane.
    v_event := centile_store.quarantined(v_board, p_quarantine_id);
    IF v_event.state = 'accepted' THEN
        RETURN v_event.transaction_id;
    ELSIF v_event.state = 'rejected' THEN
        RAISE EXCEPTION 'event % of the quarantine was rejected', p_quarantine_id USING ERRCODE = 'CB409', DETAIL = 'event_decided';
    ELSIF EXISTS (SELECT FROM centile_store.users u WHERE u.id = v_event.user_id AND u.banned_at IS NOT NULL)
       OR EXISTS (SELECT FROM centile_store.players b WHERE b.board_id = v_board.id AND b.user_id = v_event.user_id AND b.banned) THEN
        RAISE EXCEPTION 'the player of event % of the quarantine is banned', p_quarantine_id USING ERRCODE = 'CB409', DETAIL = 'user_banned';
    END IF;

    v_at := greatest(clock_timestamp(), v_lane.last_at);
    PERFORM centile_store.require_rankings(v_board, v_owner, v_at);
    PERFORM centile_store.join_segments(v_board, v_lane, v_event.user_id, v_at);
    SELECT array_agg(p.ranking_id), count(DISTINCT p.kind) FILTER (WHERE p.kind = ANY (v_board.periods) AND p.ranking_id IS NOT NULL) < cardinality(v_board.periods)
    INTO v_rankings, v_missing
    FROM centile_store.player_periods_at(v_board, v_event.user_id, v_at) p;
    IF v_missing THEN
        RAISE EXCEPTION 'a period of board % has to be opened first', p_board USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    -- As in centile_store.unerased_metadata.
    SELECT CASE WHEN u.erased_at IS NULL THEN v_event.metadata END INTO v_event.metadata
    FROM centile_store.users u WHERE u.id = v_event.user_id FOR KEY SHARE;
    INSERT INTO centile_store.score_transactions (board_id, user_id, kind, points, tiebreak, second_number, reason, occurred_at, lane, batch, metadata)
    VALUES (v_board.id, v_event.user_id, 'score', v_event.points, v_event.tiebreak, v_event.second_number, v_event.reason, v_at, v_lane.lane, v_lane.batch + 1, v_event.metadata)
    RETURNING id INTO v_event.transaction_id;
    PERFORM centile_store.write_act(v_board.id, v_lane, v_at, v_event.user_id, centile_store.entry_changes(v_rankings, ARRAY[v_event.user_id]));
    PERFORM centile_store.check_sum(v_board, v_event.user_id, v_at, v_event.points, v_event.second_number);
    PERFORM centile_store.decide_event(v_event, 'accepted', p_reason, p_actor);
    RETURN v_event.transaction_id;
END
$$;

COMMENT ON FUNCTION centile.accept_event(text, bigint, text, text) IS
'Moves an event from quarantine into the ledger, at the current time, and returns its id there. Example: SELECT centile.accept_event(''ladder'', quarantine_id, ''seen on video'') IS NOT NULL AS is_accepted FROM centile.quarantine WHERE board = ''ladder'';';
