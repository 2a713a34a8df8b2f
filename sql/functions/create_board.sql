-- Tables cannot check time zones: abbreviations such as EST have no daylight saving.
CREATE OR REPLACE FUNCTION centile.create_board(
    p_slug text, p_title text DEFAULT NULL, p_mode text DEFAULT 'sum', p_order text DEFAULT 'desc', p_ties text DEFAULT 'shared',
    p_periods text[] DEFAULT '{all_time,day,week,month}', p_lanes smallint DEFAULT 2, p_time_zone text DEFAULT 'UTC',
    p_points_min bigint DEFAULT -9007199254740991, p_points_max bigint DEFAULT 9007199254740991, p_layout_bounds bigint[] DEFAULT '{}',
    p_frozen_top_size integer DEFAULT 100, p_kept_archives jsonb DEFAULT '{}', p_reading text DEFAULT 'public',
    p_events_per_minute integer DEFAULT NULL, p_gain_max jsonb DEFAULT '{}', p_on_violation text DEFAULT 'refuse', p_snapshots text DEFAULT NULL,
    p_rolling text[] DEFAULT '{}', p_actor text DEFAULT session_user, p_tags text[] DEFAULT '{}',
    p_score_format text DEFAULT 'number', p_description text DEFAULT NULL, p_icon_url text DEFAULT NULL, p_colour text DEFAULT NULL, p_tiers text[] DEFAULT '{}', p_segments text[] DEFAULT '{}',
    p_buckets text DEFAULT 'all')
RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board_id integer;
    v_windows  bigint[];
    -- A week of hours and two months of snapshots: every archive is a view in the catalog.
    v_kept     jsonb := jsonb_strip_nulls(jsonb_build_object(
        'hour', CASE WHEN 'hour' = ANY (p_periods) THEN 168 END, 'snapshot', CASE WHEN p_snapshots IS NOT NULL THEN 60 END));
BEGIN
    IF p_mode = 'combined' THEN
        RAISE EXCEPTION 'a combined board needs sources' USING ERRCODE = 'CB422', DETAIL = 'mode', HINT = 'Call centile.combine_board.';
    END IF;
    -- So the first score need not create ledger months.
    PERFORM centile.ensure_ledger_months();
    PERFORM centile_store.check_time_zone(p_time_zone);
    PERFORM centile_store.check_buckets(p_buckets);
    INSERT INTO centile_store.boards
        (slug, title, mode, score_order, ties, periods, lanes, time_zone, points_min, points_max, layout_bounds,
         frozen_top_size, kept_archives, reading, events_per_minute, gain_max, on_violation, snapshots, rolling, tags,
         score_format, description, icon_url, colour, tiers, segments, buckets)
    VALUES (p_slug, coalesce(p_title, p_slug), p_mode, p_order, p_ties,
            ARRAY(SELECT k FROM unnest('{all_time,hour,day,week,month,quarter,year}'::text[]) AS k WHERE k = ANY (p_periods)),
            p_lanes, p_time_zone, p_points_min, p_points_max,
            ARRAY(SELECT DISTINCT s FROM unnest(p_layout_bounds) AS s ORDER BY s),
            coalesce(p_frozen_top_size, 100), jsonb_strip_nulls(CASE WHEN jsonb_typeof(p_kept_archives) <> 'object' THEN p_kept_archives ELSE v_kept || coalesce(p_kept_archives, '{}') END), coalesce(p_reading, 'public'),
            nullif(p_events_per_minute, 0), jsonb_strip_nulls(coalesce(p_gain_max, '{}')), coalesce(p_on_violation, 'refuse'), p_snapshots,
            ARRAY(SELECT r FROM (SELECT DISTINCT r FROM unnest(p_rolling) AS r) x ORDER BY r <> '24h', substring(r FROM '^[0-9]+')::numeric),
            ARRAY(SELECT DISTINCT t COLLATE "C" FROM unnest(p_tags) AS t ORDER BY 1),
            coalesce(p_score_format, 'number'), nullif(p_description, ''), nullif(p_icon_url, ''), nullif(p_colour, ''), coalesce(p_tiers, '{}'), coalesce(p_segments, '{}'), coalesce(p_buckets, 'all'))
    RETURNING id INTO v_board_id;
    INSERT INTO centile_store.board_lanes (board_id, lane)
    SELECT b.id, lane FROM centile_store.boards b CROSS JOIN generate_series(0, b.lanes - 1) AS lane WHERE b.id = v_board_id;
    -- There are no scores to fill the windows with.
    v_windows := ARRAY(SELECT centile_store.open_window(v_board_id, r.length, statement_timestamp()) FROM unnest(p_rolling) AS r (length));
    UPDATE centile_store.periods p SET state = 'open', ranking_id = centile_store.create_ranking(v_board_id, p.id) WHERE p.id = ANY (v_windows);
    PERFORM centile_store.note_act(p_actor, 'create_board', v_board_id, NULL, centile_store.board_rules(v_board_id), p_slug);
    RETURN v_board_id;
END
$$;

COMMENT ON FUNCTION centile.create_board(text, text, text, text, text, text[], smallint, text, bigint, bigint, bigint[], integer, jsonb, text, integer, jsonb, text, text, text[], text, text[], text, text, text, text, text[], text[], text) IS
'Creates a board with its lanes and returns its id. Example: SELECT centile.create_board(''laps'', p_mode => ''best'', p_order => ''asc'', p_ties => ''first'');';
