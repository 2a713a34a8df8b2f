CREATE OR REPLACE FUNCTION centile_store.hold_ban_act(p_user_id bigint, p_act bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM FROM centile_store.users u WHERE u.id = p_user_id AND u.ban_act = p_act FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a later ban or unban of the player has begun' USING ERRCODE = 'CB409', DETAIL = 'ban_superseded';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.hold_ban_act(bigint, bigint) IS
'Locks the ban or unban of this number against later ones until the transaction ends; an error if a later one has begun. Example: SELECT centile_store.hold_ban_act(b.user_id, b.act) FROM centile_store.begin_ban(''ann'', true) b;';
