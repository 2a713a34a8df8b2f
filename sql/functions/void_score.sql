CREATE OR REPLACE FUNCTION centile.void_score(p_board text, p_transaction_id bigint, p_reason text DEFAULT NULL, p_actor text DEFAULT session_user) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board  centile_store.boards := centile_store.board_named(p_board);
    v_target centile_store.score_transactions;
    v_lane   centile_store.board_lanes;
BEGIN
    PERFORM centile.ensure_ledger_months(now(), now());
    SELECT * INTO v_target FROM centile_store.score_transactions
    WHERE id = p_transaction_id AND board_id = v_board.id AND kind = 'score';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no score transaction % on board %', quote_literal(p_transaction_id), p_board
            USING ERRCODE = 'CB404', DETAIL = 'transaction';
    END IF;
    SELECT l.* INTO v_lane FROM centile_store.users u, centile_store.lock_lane(v_board, u.external_id) l WHERE u.id = v_target.user_id;
    IF EXISTS (SELECT FROM centile_store.score_transactions
               WHERE board_id = v_board.id AND user_id = v_target.user_id AND kind = 'void' AND voids_id = p_transaction_id) THEN
        RETURN false;
    END IF;
    PERFORM centile_store.record_act(v_board, v_lane, v_target.user_id, 'void', p_reason, p_transaction_id, v_target.occurred_at, p_actor);
    PERFORM centile_store.check_sum(v_board, v_target.user_id, v_target.occurred_at, -v_target.points, -v_target.second_number);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile.void_score(text, bigint, text, text) IS
'Voids a score in the open periods and returns whether it counted before. Example: SELECT centile.void_score(''main'', 1, ''cheat'');';
