-- A board's first webhook receives only later messages, so that a new receiver is not flooded;
-- centile.resend sends single older ones. A later call only replaces the address and the secret.
CREATE OR REPLACE FUNCTION centile.set_webhook(
    p_board text, p_url text, p_secret bytea, p_actor text DEFAULT session_user, p_encrypted boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board  centile_store.boards := centile_store.board_named(p_board, true);
    v_was    centile_store.webhooks;
BEGIN
    -- Before the table's checks, whose errors would show the secret to the caller and the server's
    -- log.
    IF p_url IS NULL OR octet_length(p_url) > 2048
            OR p_url !~ '^https?://([^][:space:]/?#@:]+|\[[^][:space:]/?#@]+\])(:0*[1-9][0-9]{0,4})?([/?#][^[:space:]]*)?$'
            OR substring(p_url FROM '^https?://[^/?#]*:([0-9]+)(?:[/?#]|$)')::integer > 65535 THEN
        RAISE EXCEPTION 'a URL must have https:// or http://, a host without user and password, an optional port from 1 to 65535, and a path; at most 2048 bytes'
            USING ERRCODE = 'CB422', DETAIL = 'url';
    ELSIF p_secret IS NULL OR octet_length(p_secret) - (CASE WHEN p_encrypted THEN 33 ELSE 0 END) NOT BETWEEN 16 AND 64 THEN
        RAISE EXCEPTION 'a secret must have 16 to 64 bytes' USING ERRCODE = 'CB422', DETAIL = 'secret';
    END IF;
    PERFORM centile_store.check_own_board(v_board);
    -- One call at a time: each records the previous state. A lock on the board's row would stop a
    -- change of the layout, which writers wait for.
    PERFORM pg_advisory_xact_lock(hashtextextended('webhook ' || v_board.slug, 0));
    SELECT * INTO v_was FROM centile_store.webhooks WHERE board_id = v_board.id;
    INSERT INTO centile_store.webhooks (board_id, url, secret, encrypted) VALUES (v_board.id, p_url, p_secret, p_encrypted)
    ON CONFLICT (board_id) DO UPDATE SET url = excluded.url, secret = excluded.secret, encrypted = excluded.encrypted;
    IF v_was.board_id IS NULL THEN
        -- In the order of ids, as an erasure locks them.
        PERFORM FROM centile_store.outbox o WHERE o.board_id = v_board.id AND o.delivered_at IS NULL ORDER BY o.id FOR NO KEY UPDATE;
        UPDATE centile_store.outbox SET next_attempt_at = 'infinity'
        WHERE board_id = v_board.id AND delivered_at IS NULL;
    END IF;
    -- Records only whether the secret changed. A newly encrypted secret counts as a change.
    PERFORM centile_store.note_act(p_actor, 'set_webhook', v_board.id, jsonb_build_object('url', v_was.url, 'new_secret', false),
        jsonb_build_object('url', p_url, 'new_secret', v_was.secret IS DISTINCT FROM p_secret), 'webhook');
END
$$;

COMMENT ON FUNCTION centile.set_webhook(text, text, bytea, text, boolean) IS
'Sets the URL that receives the messages of a board from now on, and the secret that signs them: 16 to 64 random bytes. centile serve encrypts the secret if it has a master key. Example: SELECT centile.set_webhook(''main'', ''https://rewards.example.com/centile'', decode(repeat(''5a'', 32), ''hex''));';
