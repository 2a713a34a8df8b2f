-- Call centile.mark_banned before the first board of a ban and after the last board of an unban,
-- each in its own transaction. So no score slips in between, and an interrupted ban can be
-- repeated.
CREATE OR REPLACE FUNCTION centile.ban_user(p_board text, p_user text, p_banned boolean, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
    SELECT centile_store.ban_player(p_board, centile_store.user_named(p_user), p_banned, p_reason, p_actor)
$$;

COMMENT ON FUNCTION centile.ban_user(text, text, boolean, text, text) IS
'Removes a player from a board''s open rankings, or brings the player back; returns whether anything changed. Example: SELECT centile.ban_user(''main'', ''ann'', true, ''cheat'');';
