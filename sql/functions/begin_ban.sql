-- The ban or unban continues board by board (centile_store.ban_player), one transaction each, and
-- ends with centile_store.end_ban. Of a concurrent ban and unban the later wins: the other finds a
-- new number at its next step. Bans have odd numbers, so two concurrent bans share one. A ban sets
-- the mark first, so that no score slips in; an unban removes it last.
CREATE OR REPLACE FUNCTION centile_store.begin_ban(
    p_user text, p_banned boolean, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user, OUT user_id bigint, OUT act bigint)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    user_id := centile_store.user_named(p_user);
    UPDATE centile_store.users u SET ban_act = u.ban_act + CASE WHEN (u.ban_act % 2 = 1) <> p_banned THEN 1 ELSE 0 END
    WHERE u.id = begin_ban.user_id RETURNING u.ban_act INTO act;
    IF p_banned THEN
        PERFORM centile_store.mark_player(user_id, true, p_reason, p_actor);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.begin_ban(text, boolean, text, text) IS
'Begins a ban or an unban of a player on all boards, and returns its number. Example: SELECT act FROM centile_store.begin_ban(''ann'', true);';
