CREATE OR REPLACE FUNCTION centile_store.ban_player(
    p_board text, p_user_id bigint, p_banned boolean, p_reason text, p_actor text, p_act bigint DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board, true);
    v_lane  centile_store.board_lanes;
BEGIN
    PERFORM centile.ensure_ledger_months(now(), now());
    -- Uses the current id: an erasure changes the id, but never the lane.
    SELECT l.* INTO v_lane FROM centile_store.users u, centile_store.lock_lane(v_board, u.external_id) l WHERE u.id = p_user_id;
    IF p_act IS NOT NULL THEN
        PERFORM centile_store.hold_ban_act(p_user_id, p_act);
    END IF;
    -- Nothing to do for a player without scores on the board, or in a repeated call.
    IF p_banned = EXISTS (SELECT FROM centile_store.players
                          WHERE board_id = v_board.id AND user_id = p_user_id AND banned)
       OR NOT EXISTS (SELECT FROM centile_store.score_transactions WHERE board_id = v_board.id AND user_id = p_user_id) THEN
        IF p_banned THEN
            -- A batch that began earlier does not know of the ban. This makes it start again.
            PERFORM centile_store.write_act(v_board.id, v_lane, v_lane.last_at, p_user_id, '{}');
        END IF;
        RETURN false;
    END IF;
    PERFORM centile_store.record_act(v_board, v_lane, p_user_id, CASE WHEN p_banned THEN 'ban' ELSE 'unban' END, p_reason, p_actor => p_actor);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.ban_player(text, bigint, boolean, text, text, bigint) IS
'Bans or unbans a player on one board, unless a later act than p_act has begun, and returns whether anything changed. Example: SELECT centile_store.ban_player(''main'', b.user_id, true, ''cheat'', ''dora'', b.act) FROM centile_store.begin_ban(''ann'', true) b;';
