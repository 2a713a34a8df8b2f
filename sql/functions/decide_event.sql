-- The caller holds the player's lane and has read the event as waiting.
CREATE OR REPLACE FUNCTION centile_store.decide_event(p_event centile_store.quarantine, p_state text, p_reason text, p_actor text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.quarantine
    SET state = p_state, decided_at = clock_timestamp(), decided_by = p_actor, decided_why = p_reason, transaction_id = p_event.transaction_id
    WHERE id = p_event.id AND state = 'waiting';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another session has decided event % of the quarantine', p_event.id USING ERRCODE = 'CB001', HINT = 'Retry.';
    END IF;
    PERFORM centile_store.note_act(p_actor, CASE p_state WHEN 'accepted' THEN 'accept_event' ELSE 'reject_event' END, p_event.board_id, NULL,
        jsonb_strip_nulls(jsonb_build_object('quarantine_id', p_event.id, 'rule', p_event.rule, 'points', p_event.points,
            'transaction_id', p_event.transaction_id, 'reason', p_reason)), NULL, p_event.user_id);
END
$$;

COMMENT ON FUNCTION centile_store.decide_event(centile_store.quarantine, text, text, text) IS
'Records the decision on an event in quarantine. Called by centile.accept_event and reject_event. Example: SELECT centile_store.decide_event(q, ''rejected'', ''cheat'', ''dora'') FROM centile_store.quarantine q;';
