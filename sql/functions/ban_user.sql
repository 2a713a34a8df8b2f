-- Bans or unbans a player on one board. centile.mark_banned comes first in a ban and last in an unban, each in its own
-- transaction: so no score slips in between, and whatever was cut short can be run again.
CREATE OR REPLACE FUNCTION centile.ban_user(p_board text, p_user text, p_banned boolean, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
    SELECT centile_store.ban_player(p_board, centile_store.user_named(p_user), p_banned, p_reason, p_actor)
$$;

COMMENT ON FUNCTION centile.ban_user(text, text, boolean, text, text) IS
'Takes a player out of a board''s open rankings, or puts the player back; says whether anything changed. Example: SELECT centile.ban_user(''main'', ''ann'', true, ''cheat'');';
