-- The mark on the user that makes every board refuse the player's scores.
CREATE FUNCTION centile.mark_banned(p_user text, p_banned boolean, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_user_id bigint := centile_store.user_named(p_user);
BEGIN
    UPDATE centile_store.users SET banned_at = CASE WHEN p_banned THEN coalesce(banned_at, clock_timestamp()) END
    WHERE id = v_user_id AND (banned_at IS NOT NULL) <> p_banned
      -- A ban that came in between stands.
      AND (p_banned OR NOT EXISTS (SELECT FROM centile_store.board_players b WHERE b.user_id = users.id AND b.banned));
    IF FOUND THEN
        PERFORM centile_store.note_act(p_actor, CASE WHEN p_banned THEN 'ban' ELSE 'unban' END, NULL,
            jsonb_build_object('banned', NOT p_banned), jsonb_strip_nulls(jsonb_build_object('banned', p_banned, 'reason', p_reason)), NULL, v_user_id);
    END IF;
END
$$;

COMMENT ON FUNCTION centile.mark_banned(text, boolean, text, text) IS
'Marks a user as banned or not; centile.ban_user does the rest, board by board. Example: SELECT centile.mark_banned(''ann'', true);';
