-- The mark on the user that makes every board refuse the player's scores.
CREATE FUNCTION centile.mark_banned(p_user text, p_banned boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.user_named(p_user);
    UPDATE centile_store.users SET banned_at = CASE WHEN p_banned THEN coalesce(banned_at, clock_timestamp()) END
    WHERE external_id = p_user AND (banned_at IS NOT NULL) <> p_banned
      -- A ban that came in between stands.
      AND (p_banned OR NOT EXISTS (SELECT FROM centile_store.board_players b WHERE b.user_id = users.id AND b.banned));
END
$$;

COMMENT ON FUNCTION centile.mark_banned(text, boolean) IS
'Marks a user as banned or not; centile.ban_user does the rest, board by board. Example: SELECT centile.mark_banned(''ann'', true);';
