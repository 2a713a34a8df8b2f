CREATE OR REPLACE FUNCTION centile.remove_webhook(p_board text, p_actor text DEFAULT session_user) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board, true);
    v_url   text;
BEGIN
    DELETE FROM centile_store.webhooks WHERE board_id = v_board.id RETURNING url INTO v_url;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no webhook of board %', quote_literal(p_board)
            USING ERRCODE = 'CB404', DETAIL = 'webhook', HINT = 'SELECT centile.set_webhook(…) creates one.';
    END IF;
    PERFORM centile_store.note_act(p_actor, 'remove_webhook', v_board.id, jsonb_build_object('url', v_url), NULL, 'webhook');
END
$$;

COMMENT ON FUNCTION centile.remove_webhook(text, text) IS
'Stops sending the messages of a board; they stay in centile.outbox. Example: SELECT centile.set_webhook(''main'', ''https://rewards.example.com/centile'', decode(repeat(''5a'', 32), ''hex'')), centile.remove_webhook(''main'');';
