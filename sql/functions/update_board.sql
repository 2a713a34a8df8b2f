-- Changes a board; NULL leaves a rule as it is. What gives the scores their meaning cannot change once there are any. Of the
-- archives kept, the kinds named are changed: a number is the new limit, a JSON null takes it off. So it is with gain_max; 0 events per
-- minute takes that limit off.
CREATE OR REPLACE FUNCTION centile.update_board(
    p_slug text, p_title text DEFAULT NULL, p_mode text DEFAULT NULL, p_order text DEFAULT NULL, p_ties text DEFAULT NULL,
    p_lanes smallint DEFAULT NULL, p_time_zone text DEFAULT NULL, p_points_min bigint DEFAULT NULL, p_points_max bigint DEFAULT NULL,
    p_frozen_top_size integer DEFAULT NULL, p_kept_archives jsonb DEFAULT NULL, p_reading text DEFAULT NULL,
    p_events_per_minute integer DEFAULT NULL, p_gain_max jsonb DEFAULT NULL, p_on_violation text DEFAULT NULL,
    p_actor text DEFAULT session_user)
RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_slug);
    v_new   centile_store.boards;
    v_was   jsonb;
BEGIN
    PERFORM centile_store.lock_structure(v_board.id, true);
    v_board := centile_store.board_named(p_slug);
    v_was := centile_store.board_rules(v_board.id);
    v_new := v_board;
    v_new.title := coalesce(p_title, v_board.title);
    v_new.mode := coalesce(p_mode, v_board.mode);
    v_new.score_order := coalesce(p_order, v_board.score_order);
    v_new.ties := coalesce(p_ties, v_board.ties);
    v_new.lanes := coalesce(p_lanes, v_board.lanes);
    v_new.time_zone := coalesce(p_time_zone, v_board.time_zone);
    v_new.points_min := coalesce(p_points_min, v_board.points_min);
    v_new.points_max := coalesce(p_points_max, v_board.points_max);
    v_new.frozen_top_size := coalesce(p_frozen_top_size, v_board.frozen_top_size);
    v_new.kept_archives := jsonb_strip_nulls(v_board.kept_archives || coalesce(p_kept_archives, '{}'));
    v_new.reading := coalesce(p_reading, v_board.reading);
    v_new.events_per_minute := nullif(coalesce(p_events_per_minute, v_board.events_per_minute), 0);
    v_new.gain_max := jsonb_strip_nulls(v_board.gain_max || coalesce(p_gain_max, '{}'));
    v_new.on_violation := coalesce(p_on_violation, v_board.on_violation);
    IF v_new.time_zone <> v_board.time_zone THEN
        PERFORM centile_store.check_time_zone(v_new.time_zone);
    END IF;
    IF (v_new.mode, v_new.score_order, v_new.ties, v_new.lanes, v_new.time_zone)
           <> (v_board.mode, v_board.score_order, v_board.ties, v_board.lanes, v_board.time_zone)
       AND (EXISTS (SELECT FROM centile_store.periods WHERE board_id = v_board.id)
            OR EXISTS (SELECT FROM centile_store.board_lanes WHERE board_id = v_board.id AND batch > 0)
            OR EXISTS (SELECT FROM centile_store.quarantine WHERE board_id = v_board.id)) THEN
        RAISE EXCEPTION 'board % has events: mode, order, ties, lanes and time zone cannot change any more', p_slug
            USING ERRCODE = 'CB409', HINT = 'Create another board and import the events into it.';
    END IF;
    UPDATE centile_store.boards
    SET title = v_new.title, mode = v_new.mode, score_order = v_new.score_order, ties = v_new.ties, lanes = v_new.lanes,
        time_zone = v_new.time_zone, points_min = v_new.points_min, points_max = v_new.points_max,
        frozen_top_size = v_new.frozen_top_size, kept_archives = v_new.kept_archives, reading = v_new.reading,
        events_per_minute = v_new.events_per_minute, gain_max = v_new.gain_max, on_violation = v_new.on_violation
    WHERE id = v_board.id;
    IF v_new.lanes <> v_board.lanes THEN
        DELETE FROM centile_store.board_lanes WHERE board_id = v_board.id AND lane >= v_new.lanes;
        INSERT INTO centile_store.board_lanes (board_id, lane)
        SELECT v_board.id, lane FROM generate_series(v_board.lanes, v_new.lanes - 1) AS lane;
    END IF;
    PERFORM centile_store.note_act(p_actor, 'change_board', v_board.id, v_was, centile_store.board_rules(v_board.id), p_slug);
    RETURN v_board.id;
END
$$;

COMMENT ON FUNCTION centile.update_board(text, text, text, text, text, smallint, text, bigint, bigint, integer, jsonb, text, integer, jsonb, text, text) IS
'Changes the rules of a board and returns its id. Example: SELECT centile.update_board(''main'', p_title => ''Main board'', p_kept_archives => ''{"day": 30}'');';
