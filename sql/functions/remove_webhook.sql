-- From here on the events of the board are for those who poll; what waits, waits for nobody any more.
CREATE FUNCTION centile.remove_webhook(p_board text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board);
BEGIN
    DELETE FROM centile_store.webhooks WHERE board_id = v_board.id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no webhook of board %', quote_literal(p_board)
            USING ERRCODE = 'CB404', DETAIL = 'webhook', HINT = 'SELECT centile.set_webhook(…) makes one.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile.remove_webhook(text) IS
'Has the events of a board sent nowhere any more. Example: SELECT centile.set_webhook(''main'', ''https://rewards.example.com/centile'', decode(repeat(''5a'', 32), ''hex'')), centile.remove_webhook(''main'');';
