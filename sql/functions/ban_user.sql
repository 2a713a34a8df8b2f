-- Bans or unbans a player on one board. centile.mark_banned comes first in a ban and last in an unban, each in its own
-- transaction: so no score slips in between, and whatever was cut short can be run again.
CREATE FUNCTION centile.ban_user(p_board text, p_user text, p_banned boolean, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board   centile_store.boards := centile_store.board_named(p_board);
    v_user_id bigint := centile_store.user_named(p_user);
    v_lane    centile_store.board_lanes;
BEGIN
    PERFORM centile.ensure_ledger_months(now(), now());
    v_lane := centile_store.lock_lane(v_board, p_user);
    -- Nothing to say on a board that the player never played, nor twice.
    IF p_banned = EXISTS (SELECT FROM centile_store.board_players
                          WHERE board_id = v_board.id AND user_id = v_user_id AND banned)
       OR NOT EXISTS (SELECT FROM centile_store.score_transactions WHERE board_id = v_board.id AND user_id = v_user_id) THEN
        RETURN false;
    END IF;
    PERFORM centile_store.record_act(v_board, v_lane, v_user_id, CASE WHEN p_banned THEN 'ban' ELSE 'unban' END, p_reason, p_actor => p_actor);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile.ban_user(text, text, boolean, text, text) IS
'Takes a player out of a board''s open rankings, or puts the player back; says whether anything changed. Example: SELECT centile.ban_user(''main'', ''ann'', true, ''cheat'');';
