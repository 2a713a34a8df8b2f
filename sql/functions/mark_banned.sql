CREATE OR REPLACE FUNCTION centile.mark_banned(p_user text, p_banned boolean, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF p_banned THEN
        PERFORM centile_store.begin_ban(p_user, true, p_reason, p_actor);
    ELSE
        PERFORM centile_store.mark_player(centile_store.user_named(p_user), false, p_reason, p_actor);
    END IF;
END
$$;

COMMENT ON FUNCTION centile.mark_banned(text, boolean, text, text) IS
'Marks a user as banned or not, so that every board refuses or accepts the player''s scores; centile.ban_user does the rest, board by board. Example: SELECT centile.mark_banned(''ann'', true);';
