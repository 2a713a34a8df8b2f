CREATE OR REPLACE FUNCTION centile.create_season(p_board text, p_name text, p_starts_at timestamptz, p_ends_at timestamptz, p_actor text DEFAULT session_user) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET timezone = 'UTC'
AS $$
DECLARE
    v_board     centile_store.boards := centile_store.board_named(p_board);
    v_period_id bigint;
BEGIN
    PERFORM centile_store.check_own_board(v_board);
    PERFORM centile_store.check_written(v_board);
    PERFORM centile_store.lock_structure(v_board.id, true);
    IF p_starts_at IS NULL OR p_ends_at IS NULL OR NOT p_starts_at < p_ends_at THEN
        RAISE EXCEPTION 'a season must begin before it ends' USING ERRCODE = 'CB422', DETAIL = 'ends_at';
    ELSIF p_starts_at < '2000-01-01 00:00:00+00' OR p_ends_at > '2071-01-01 00:00:00+00' THEN
        RAISE EXCEPTION 'a season must lie between 2000 and 2071' USING ERRCODE = 'CB422', DETAIL = CASE WHEN p_starts_at < '2000-01-01 00:00:00+00' THEN 'starts_at' ELSE 'ends_at' END;
    ELSIF EXISTS (SELECT FROM centile_store.periods WHERE board_id = v_board.id AND kind = 'season' AND label = p_name AND segment = '') THEN
        RAISE EXCEPTION 'board % already has a season %', p_board, quote_literal(p_name) USING ERRCODE = 'CB409', DETAIL = 'season_exists';
    ELSIF EXISTS (SELECT FROM centile_store.board_lanes WHERE board_id = v_board.id AND last_at >= p_starts_at)
      AND EXISTS (SELECT FROM centile_store.score_transactions t
                  WHERE t.board_id = v_board.id AND t.occurred_at >= p_starts_at AND t.occurred_at < p_ends_at AND t.kind = 'score') THEN
        RAISE EXCEPTION 'board % already has scores within these bounds', p_board
            USING ERRCODE = 'CB409', DETAIL = 'season_has_scores', HINT = 'Create a season before its first score.';
    END IF;
    -- The state is open from now on; the clock decides whether the season has begun.
    INSERT INTO centile_store.periods (board_id, kind, label, starts_at, ends_at, state)
    VALUES (v_board.id, 'season', p_name, p_starts_at, p_ends_at, 'closed')
    RETURNING id INTO v_period_id;
    UPDATE centile_store.periods SET state = 'open', ranking_id = centile_store.create_ranking(v_board.id, v_period_id) WHERE id = v_period_id;
    PERFORM centile_store.note_act(p_actor, 'create_season', v_board.id, NULL,
        jsonb_build_object('starts_at', p_starts_at, 'ends_at', p_ends_at), 'season:' || p_name);
    RETURN v_period_id;
END
$$;

COMMENT ON FUNCTION centile.create_season(text, text, timestamptz, timestamptz, text) IS
'Creates a season, a period with its own name and bounds, and returns its period id. Example: SELECT centile.create_season(''main'', ''spring'', centile.local_start(''2030-03-01'', ''UTC''), centile.local_start(''2030-06-01'', ''UTC'')) IS NOT NULL AS is_made;';
