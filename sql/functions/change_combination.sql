-- NULL leaves a part unchanged. A change to the sources, join or aggregate makes a refresh due at once;
-- until then, readers get the previous ranking. A change to the refresh rule alone does not. Fails at
-- once while the board is being refreshed: bans would wait for this session.
CREATE OR REPLACE FUNCTION centile.change_combination(
    p_slug text, p_sources jsonb DEFAULT NULL, p_join text DEFAULT NULL, p_aggregate text DEFAULT NULL, p_refresh text DEFAULT NULL,
    p_actor text DEFAULT session_user)
RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_slug);
    v_was   jsonb;
    v_is    jsonb;
BEGIN
    PERFORM FROM centile_store.combinations WHERE board_id = v_board.id FOR UPDATE NOWAIT;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'board % is not computed from others', p_slug USING ERRCODE = 'CB422', DETAIL = 'combination', HINT = 'Create a combined board.';
    END IF;
    v_was := centile_store.combination_rules(v_board.id);
    UPDATE centile_store.combinations c
    SET join_rule = coalesce(p_join, c.join_rule), aggregate = coalesce(p_aggregate, c.aggregate), refresh = coalesce(p_refresh, c.refresh)
    WHERE c.board_id = v_board.id;
    IF p_sources IS NOT NULL THEN
        PERFORM centile_store.set_sources(v_board.id, p_sources);
    END IF;
    v_is := centile_store.combination_rules(v_board.id);
    IF v_is - 'refresh' <> v_was - 'refresh' THEN
        UPDATE centile_store.combinations c
        -- After the last refresh, even if the clock was set back.
        SET defined_at = greatest(clock_timestamp(), c.as_of + interval '1 microsecond', c.next_as_of + interval '1 microsecond'), failures = 0, failed_at = NULL, failure = NULL
        WHERE c.board_id = v_board.id;
    END IF;
    PERFORM centile_store.note_act(p_actor, 'change_board', v_board.id, v_was, v_is, p_slug);
    RETURN v_board.id;
END
$$;

COMMENT ON FUNCTION centile.change_combination(text, jsonb, text, text, text, text) IS
'Changes the sources of a combined board or how they are joined, aggregated and refreshed. Example: SELECT centile.change_combination(''hero'', p_join => ''intersection'');';
