-- Where the events of a board go from now on. A board that had no webhook begins with the events to come: what has waited
-- for nobody in particular is put off for good, so that a new receiver is not flooded with the past; centile.resend sends
-- single ones all the same. A new address or secret of a board that has a webhook changes nothing else: what waits, goes there.
CREATE FUNCTION centile.set_webhook(p_board text, p_url text, p_secret bytea) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board  centile_store.boards := centile_store.board_named(p_board);
    v_is_new boolean;
BEGIN
    -- Before the table's own checks: they would show the row, and the secret with it, to the caller and to the server's log.
    IF p_url IS NULL OR octet_length(p_url) > 2048
            OR p_url !~ '^https?://([^][:space:]/?#@:]+|\[[^][:space:]/?#@]+\])(:0*[1-9][0-9]{0,4})?([/?#][^[:space:]]*)?$'
            OR substring(p_url FROM '^https?://[^/?#]*:([0-9]+)(?:[/?#]|$)')::integer > 65535 THEN
        RAISE EXCEPTION 'an address is https:// or http://, a host without user and password, a port from 1 to 65535 or none, and a path; at most 2048 bytes'
            USING ERRCODE = 'CB422', DETAIL = 'url';
    ELSIF p_secret IS NULL OR octet_length(p_secret) NOT BETWEEN 16 AND 64 THEN
        RAISE EXCEPTION 'a secret has 16 to 64 bytes' USING ERRCODE = 'CB422', DETAIL = 'secret';
    END IF;
    INSERT INTO centile_store.webhooks AS w (board_id, url, secret) VALUES (v_board.id, p_url, p_secret)
    ON CONFLICT (board_id) DO UPDATE SET url = excluded.url, secret = excluded.secret
    -- Only a row that was updated bears the mark of the transaction that locked it.
    RETURNING w.xmax = 0 INTO v_is_new;
    IF v_is_new THEN
        UPDATE centile_store.outbox SET next_attempt_at = 'infinity'
        WHERE board_id = v_board.id AND delivered_at IS NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile.set_webhook(text, text, bytea) IS
'Has the events of a board sent to an address from now on, signed with a secret of 16 to 64 random bytes. Example: SELECT centile.set_webhook(''main'', ''https://rewards.example.com/centile'', decode(repeat(''5a'', 32), ''hex''));';
