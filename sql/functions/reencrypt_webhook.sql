CREATE OR REPLACE FUNCTION centile_store.reencrypt_webhook(p_board text, p_was bytea, p_secret bytea) RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
    WITH done AS (
        UPDATE centile_store.webhooks w SET secret = p_secret, encrypted = true
        FROM centile_store.boards b
        WHERE b.slug = p_board AND w.board_id = b.id AND w.secret = p_was RETURNING 1
    )
    SELECT EXISTS (SELECT FROM done)
$$;

COMMENT ON FUNCTION centile_store.reencrypt_webhook(text, bytea, bytea) IS
'Replaces the stored secret of a board''s webhook by a newly encrypted one; false if it has changed meanwhile. Example: SELECT centile_store.reencrypt_webhook(''main'', ''\x00'', ''\x01'');';
