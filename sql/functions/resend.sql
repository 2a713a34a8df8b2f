-- Attempts and the delays between them start again.
CREATE OR REPLACE FUNCTION centile.resend(p_message_id bigint, p_actor text DEFAULT session_user) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards;
BEGIN
    SELECT b.* INTO v_board
    FROM centile_store.outbox o JOIN centile_store.boards b ON b.id = o.board_id WHERE o.id = p_message_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no message %', quote_literal(p_message_id)
            USING ERRCODE = 'CB404', DETAIL = 'message', HINT = 'SELECT message_id FROM centile.outbox lists them.';
    ELSIF NOT EXISTS (SELECT FROM centile_store.webhooks WHERE board_id = v_board.id) THEN
        RAISE EXCEPTION 'board % has no webhook', v_board.slug
            USING ERRCODE = 'CB409', HINT = 'SELECT centile.set_webhook(…) creates one.';
    END IF;
    UPDATE centile_store.outbox SET delivered_at = NULL, attempts = 0, next_attempt_at = clock_timestamp() WHERE id = p_message_id;
    PERFORM centile_store.note_act(p_actor, 'resend', v_board.id, NULL, jsonb_build_object('message_id', p_message_id), 'outbox');
    RETURN v_board.slug;
END
$$;

COMMENT ON FUNCTION centile.resend(bigint, text) IS
'Sends a message again, delivered or not. Example: SELECT c.at IS NOT NULL AS is_cut_off, centile_store.build_archive(2), centile_store.compare_archive(2), centile_store.finish_close(2, c.at), centile.set_webhook(''main'', ''https://rewards.example.com/centile'', decode(repeat(''5a'', 32), ''hex'')), centile.resend(1) FROM (SELECT centile_store.cut_off_period(2) AS at) c;';
