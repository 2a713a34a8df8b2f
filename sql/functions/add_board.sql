-- p_rules is described at centile_store.set_rules. A combined board needs the member combination, and
-- the next refresh, which is due at once, computes its ranking.
CREATE OR REPLACE FUNCTION centile_store.add_board(p_slug text, p_rules jsonb, p_is_template boolean, p_actor text) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_is_combined boolean := coalesce(p_rules ->> 'mode' = 'combined', false);
    -- A week of hours and two months of snapshots: every archive is a view in the catalog.
    v_kept        jsonb := jsonb_strip_nulls(jsonb_build_object(
        'hour', CASE WHEN p_rules -> 'periods' ? 'hour' THEN 168 END,
        'snapshot', CASE WHEN p_rules ->> 'snapshots' IS NOT NULL THEN 60 END));
    v_board       centile_store.boards;
    v_windows     bigint[];
BEGIN
    IF v_is_combined <> (p_rules ->> 'combination' IS NOT NULL) THEN
        RAISE EXCEPTION 'is required for mode combined, and only for this mode' USING ERRCODE = 'CB422', DETAIL = 'combination';
    END IF;
    -- So the first score need not create ledger months.
    PERFORM centile.ensure_ledger_months();
    INSERT INTO centile_store.boards (slug, is_template, title, mode, score_order, ties, periods, time_zone, lanes, points_min, points_max, kept_archives)
    VALUES (p_slug, p_is_template, p_slug, CASE WHEN v_is_combined THEN 'combined' ELSE 'sum' END, 'desc', 'shared',
            CASE WHEN v_is_combined THEN '{all_time}' ELSE '{all_time,day,week,month}' END::text[], 'UTC',
            CASE WHEN v_is_combined THEN 1 ELSE 2 END, -9007199254740991, 9007199254740991, v_kept)
    RETURNING * INTO v_board;
    v_board := centile_store.set_rules(v_board, p_rules);
    INSERT INTO centile_store.board_lanes (board_id, lane) SELECT v_board.id, lane FROM generate_series(0, v_board.lanes - 1) AS lane;
    -- There are no scores to fill the windows with.
    v_windows := ARRAY(SELECT centile_store.open_window(v_board.id, r.length, statement_timestamp()) FROM unnest(v_board.rolling) AS r (length));
    UPDATE centile_store.periods p SET state = 'open', ranking_id = centile_store.create_ranking(v_board.id, p.id) WHERE p.id = ANY (v_windows);
    IF v_is_combined THEN
        INSERT INTO centile_store.combinations (board_id, join_rule, aggregate, refresh) VALUES (v_board.id, 'union', 'sum', 'manual');
        PERFORM centile_store.set_combination(v_board, '{"sources": []}'::jsonb || jsonb_strip_nulls(p_rules -> 'combination'));
    END IF;
    PERFORM centile_store.note_act(p_actor, 'create_board', v_board.id, NULL, centile_store.board_rules(v_board.id), p_slug);
    RETURN v_board.id;
END
$$;

COMMENT ON FUNCTION centile_store.add_board(text, jsonb, boolean, text) IS
'Creates a board or a template with its lanes and returns its id. Example: SELECT centile_store.add_board(''laps'', ''{"mode": "best"}'', false, ''ann'');';
