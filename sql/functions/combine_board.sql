-- The ranking is computed by the next refresh, which is due at once.
CREATE OR REPLACE FUNCTION centile.combine_board(
    p_slug text, p_sources jsonb, p_join text DEFAULT 'union', p_aggregate text DEFAULT 'sum', p_refresh text DEFAULT 'manual',
    p_title text DEFAULT NULL, p_order text DEFAULT 'desc', p_ties text DEFAULT 'shared', p_time_zone text DEFAULT 'UTC',
    p_reading text DEFAULT 'public', p_frozen_top_size integer DEFAULT 100, p_actor text DEFAULT session_user,
    p_tags text[] DEFAULT '{}', p_score_format text DEFAULT 'number', p_description text DEFAULT NULL, p_icon_url text DEFAULT NULL, p_colour text DEFAULT NULL, p_tiers text[] DEFAULT '{}')
RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board_id integer;
BEGIN
    PERFORM centile_store.check_time_zone(p_time_zone);
    INSERT INTO centile_store.boards
        (slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max, frozen_top_size, reading, tags,
         score_format, description, icon_url, colour, tiers)
    VALUES (p_slug, coalesce(p_title, p_slug), 'combined', p_order, p_ties, '{all_time}', 1, p_time_zone,
            -9007199254740991, 9007199254740991, coalesce(p_frozen_top_size, 100), coalesce(p_reading, 'public'),
            ARRAY(SELECT DISTINCT t COLLATE "C" FROM unnest(p_tags) AS t ORDER BY 1),
            coalesce(p_score_format, 'number'), nullif(p_description, ''), nullif(p_icon_url, ''), nullif(p_colour, ''), coalesce(p_tiers, '{}'))
    RETURNING id INTO v_board_id;
    INSERT INTO centile_store.board_lanes (board_id, lane) VALUES (v_board_id, 0);
    INSERT INTO centile_store.combinations (board_id, join_rule, aggregate, refresh)
    VALUES (v_board_id, p_join, p_aggregate, coalesce(p_refresh, 'manual'));
    PERFORM centile_store.set_sources(v_board_id, p_sources);
    PERFORM centile_store.note_act(p_actor, 'create_board', v_board_id, NULL,
        centile_store.board_rules(v_board_id) || centile_store.combination_rules(v_board_id), p_slug);
    RETURN v_board_id;
END
$$;

COMMENT ON FUNCTION centile.combine_board(text, jsonb, text, text, text, text, text, text, text, text, integer, text, text[], text, text, text, text, text[]) IS
'Creates a board that is computed from periods of other boards and returns its id. Example: SELECT centile.combine_board(''overall'', ''[{"board": "main", "period": "week:previous", "weight": 2}, {"board": "arena", "period": "week:previous"}]'', p_join => ''intersection'');';
