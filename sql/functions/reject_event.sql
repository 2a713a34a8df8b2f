CREATE OR REPLACE FUNCTION centile.reject_event(p_board text, p_quarantine_id bigint, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board);
    v_event centile_store.quarantine := centile_store.quarantined(v_board, p_quarantine_id);
BEGIN
    PERFORM centile_store.lock_lane(v_board, u.external_id) FROM centile_store.users u WHERE u.id = v_event.user_id;
    -- Another session may have decided before this one locked the lane.
    v_event := centile_store.quarantined(v_board, p_quarantine_id);
    IF v_event.state = 'accepted' THEN
        RAISE EXCEPTION 'event % of the quarantine was accepted', p_quarantine_id
            USING ERRCODE = 'CB409', DETAIL = 'event_decided', HINT = format('Void score transaction %s.', v_event.transaction_id);
    ELSIF v_event.state = 'rejected' THEN
        RETURN false;
    END IF;
    PERFORM centile_store.decide_event(v_event, 'rejected', p_reason, p_actor);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile.reject_event(text, bigint, text, text) IS
'Rejects an event that waits in quarantine and returns whether it still waited. Example: SELECT centile.reject_event(''ladder'', quarantine_id, ''cheat'') FROM centile.quarantine WHERE board = ''ladder'';';
