CREATE OR REPLACE FUNCTION centile.reset_player(p_board text, p_user text, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board   centile_store.boards := centile_store.board_named(p_board);
    v_user_id bigint := centile_store.user_named(p_user);
    v_lane    centile_store.board_lanes;
BEGIN
    PERFORM centile_store.check_written(v_board);
    PERFORM centile.ensure_ledger_months(now(), now());
    v_lane := centile_store.lock_lane(v_board, p_user);
    RETURN centile_store.record_act(v_board, v_lane, v_user_id, 'reset', p_reason, p_actor => p_actor);
END
$$;

COMMENT ON FUNCTION centile.reset_player(text, text, text, text) IS
'Resets a player in the current periods of a board and returns the transaction''s id. Example: SELECT centile.reset_player(''main'', ''ann'', ''asked for it'');';
