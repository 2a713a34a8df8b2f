-- p_rules is described at centile_store.set_rules. The rules that define the meaning of scores cannot
-- change once there are scores. buckets takes effect for rankings that are created from then on.
CREATE OR REPLACE FUNCTION centile.update_board(p_slug text, p_rules jsonb, p_actor text DEFAULT session_user) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_slug, true);
    v_new   centile_store.boards;
    v_was   jsonb;
    v_name  text := (SELECT min(n) FROM unnest('{periods,first_layout}'::text[]) AS n WHERE p_rules ->> n IS NOT NULL);
BEGIN
    IF v_name IS NOT NULL THEN
        RAISE EXCEPTION 'cannot change' USING ERRCODE = 'CB422', DETAIL = v_name, HINT = 'Create another board.';
    END IF;
    PERFORM centile_store.check_own_board(v_board);
    PERFORM centile_store.lock_buckets(v_board.id);
    PERFORM centile_store.lock_structure(v_board.id, true);
    v_board := centile_store.board_named(p_slug, true);
    v_was := centile_store.board_rules(v_board.id);
    v_new := centile_store.set_rules(v_board, p_rules);
    IF (v_new.mode, v_new.score_order, v_new.ties, v_new.tiebreak_order, v_new.tiebreak_sum, v_new.lanes, v_new.time_zone, v_new.segments)
           IS DISTINCT FROM (v_board.mode, v_board.score_order, v_board.ties, v_board.tiebreak_order, v_board.tiebreak_sum, v_board.lanes, v_board.time_zone, v_board.segments)
       AND (EXISTS (SELECT FROM centile_store.template_boards t WHERE t.template_id = v_board.id)
            OR EXISTS (SELECT FROM centile_store.periods WHERE board_id = v_board.id AND kind <> 'rolling')
            -- A lane may have batches without scores: see centile_store.move_player.
            OR EXISTS (SELECT FROM centile_store.score_transactions WHERE board_id = v_board.id)
            OR EXISTS (SELECT FROM centile_store.quarantine WHERE board_id = v_board.id)) THEN
        IF v_board.mode = 'combined' THEN
            RAISE EXCEPTION 'board % has a ranking: order, ties and time zone cannot change any more', p_slug
                USING ERRCODE = 'CB409', DETAIL = 'board_has_events', HINT = 'Create another combined board.';
        END IF;
        RAISE EXCEPTION 'board % has events: mode, order, ties, rules of tiebreaks, lanes, time zone and segments cannot change any more', p_slug
            USING ERRCODE = 'CB409', DETAIL = 'board_has_events', HINT = 'Create another board and import the events into it.';
    END IF;
    IF v_new.ties = 'second' THEN
        -- As set_sources, which may be making the board a source.
        PERFORM pg_advisory_xact_lock(1128615508, -3);
        IF EXISTS (SELECT FROM centile_store.combination_sources s WHERE s.source_board_id = v_board.id) THEN
            RAISE EXCEPTION 'a source of a combined board cannot have ties second' USING ERRCODE = 'CB422', DETAIL = 'ties';
        END IF;
    END IF;
    IF (v_new.lanes, v_new.time_zone) <> (v_board.lanes, v_board.time_zone) THEN
        -- The service creates these windows again.
        PERFORM centile_store.release_windows(v_board.id, true);
    END IF;
    IF v_new.mode <> v_board.mode AND 'combined' IN (v_new.mode, v_board.mode) THEN
        RAISE EXCEPTION 'mode cannot change to or from combined' USING ERRCODE = 'CB422', DETAIL = 'mode', HINT = 'Create another board.';
    END IF;
    -- The next refresh brings the new tiers, so it is due.
    UPDATE centile_store.combinations c SET defined_at = greatest(clock_timestamp(), c.as_of + interval '1 microsecond', c.next_as_of + interval '1 microsecond')
    WHERE c.board_id = v_board.id AND c.refresh <> 'manual' AND v_new.tiers <> v_board.tiers;
    IF v_new.lanes <> v_board.lanes THEN
        DELETE FROM centile_store.board_lanes WHERE board_id = v_board.id AND lane >= v_new.lanes;
        -- A lane that was there before goes on after its last batch.
        INSERT INTO centile_store.board_lanes (board_id, lane, batch)
        SELECT v_board.id, n, coalesce(centile_store.last_logged(v_board.id, n::smallint), 0)
        FROM generate_series(v_board.lanes, v_new.lanes - 1) AS n;
    END IF;
    IF p_rules ->> 'combination' IS NOT NULL THEN
        PERFORM centile_store.set_combination(v_new, p_rules -> 'combination');
    END IF;
    PERFORM centile_store.note_act(p_actor, 'change_board', v_board.id, v_was, centile_store.board_rules(v_board.id), p_slug);
    RETURN v_board.id;
END
$$;

COMMENT ON FUNCTION centile.update_board(text, jsonb, text) IS
'Changes the given rules of a board and returns its id; absent rules stay as they are. kept_archives, gain_max and combination change only the members that they name. null removes an optional rule, such as description, or a kind of period in kept_archives and gain_max. Example: SELECT centile.update_board(''main'', ''{"title": "Main board", "kept_archives": {"day": 30}}'');';
