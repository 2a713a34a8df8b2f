-- Sets or removes the mark once more, because another session may have changed it meanwhile.
CREATE OR REPLACE FUNCTION centile_store.end_ban(p_user_id bigint, p_act bigint, p_banned boolean, p_reason text, p_actor text) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM centile_store.hold_ban_act(p_user_id, p_act);
    PERFORM centile_store.mark_player(p_user_id, p_banned, p_reason, p_actor);
    RETURN (SELECT u.external_id FROM centile_store.users u WHERE u.id = p_user_id);
END
$$;

COMMENT ON FUNCTION centile_store.end_ban(bigint, bigint, boolean, text, text) IS
'Ends a ban or an unban that has reached all boards, and returns the current id of the player. Example: SELECT centile_store.end_ban(b.user_id, b.act, true, ''cheat'', ''dora'') FROM centile_store.begin_ban(''ann'', true) b;';
