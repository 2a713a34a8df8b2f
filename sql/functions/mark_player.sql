CREATE OR REPLACE FUNCTION centile_store.mark_player(p_user_id bigint, p_banned boolean, p_reason text, p_actor text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    UPDATE centile_store.users SET banned_at = CASE WHEN p_banned THEN coalesce(banned_at, clock_timestamp()) END
    WHERE id = p_user_id AND (banned_at IS NOT NULL) <> p_banned
      -- Keeps the mark of a ban that was made in between.
      AND (p_banned OR NOT EXISTS (SELECT FROM centile_store.players b WHERE b.user_id = users.id AND b.banned));
    IF FOUND THEN
        PERFORM centile_store.note_act(p_actor, CASE WHEN p_banned THEN 'ban' ELSE 'unban' END, NULL,
            jsonb_build_object('banned', NOT p_banned), jsonb_strip_nulls(jsonb_build_object('banned', p_banned, 'reason', p_reason)), NULL, p_user_id);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.mark_player(bigint, boolean, text, text) IS
'Marks a player as banned or not; every board refuses the scores of a banned player. Example: SELECT centile_store.mark_player(1, true, ''cheat'', ''dora'');';
