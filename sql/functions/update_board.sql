-- NULL leaves a rule unchanged. The rules that define the meaning of scores cannot change once
-- there are scores. p_kept_archives and p_gain_max change the kinds that they name: a number is the
-- new limit, a JSON null removes it. 0 events per minute removes that limit, and
-- none removes the snapshots. p_rolling replaces all lengths, p_tags all tags, p_tiers all tiers, and
-- p_segments all segments. An empty text removes description, icon and colour. p_buckets takes effect
-- for rankings that are created from then on.
CREATE OR REPLACE FUNCTION centile.update_board(
    p_slug text, p_title text DEFAULT NULL, p_mode text DEFAULT NULL, p_order text DEFAULT NULL, p_ties text DEFAULT NULL,
    p_lanes smallint DEFAULT NULL, p_time_zone text DEFAULT NULL, p_points_min bigint DEFAULT NULL, p_points_max bigint DEFAULT NULL,
    p_frozen_top_size integer DEFAULT NULL, p_kept_archives jsonb DEFAULT NULL, p_reading text DEFAULT NULL,
    p_events_per_minute integer DEFAULT NULL, p_gain_max jsonb DEFAULT NULL, p_on_violation text DEFAULT NULL,
    p_snapshots text DEFAULT NULL, p_rolling text[] DEFAULT NULL, p_actor text DEFAULT session_user, p_tags text[] DEFAULT NULL,
    p_score_format text DEFAULT NULL, p_description text DEFAULT NULL, p_icon_url text DEFAULT NULL, p_colour text DEFAULT NULL, p_tiers text[] DEFAULT NULL, p_segments text[] DEFAULT NULL, p_buckets text DEFAULT NULL)
RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_slug);
    v_new   centile_store.boards;
    v_was   jsonb;
BEGIN
    PERFORM centile_store.lock_buckets(v_board.id);
    PERFORM centile_store.lock_structure(v_board.id, true);
    v_board := centile_store.board_named(p_slug);
    v_was := centile_store.board_rules(v_board.id);
    PERFORM centile_store.check_time_zone(p_time_zone) WHERE p_time_zone <> v_board.time_zone;
    PERFORM centile_store.check_buckets(p_buckets);
    UPDATE centile_store.boards b
    SET title = coalesce(p_title, b.title), mode = coalesce(p_mode, b.mode), score_order = coalesce(p_order, b.score_order),
        ties = coalesce(p_ties, b.ties), lanes = coalesce(p_lanes, b.lanes), time_zone = coalesce(p_time_zone, b.time_zone),
        points_min = coalesce(p_points_min, b.points_min), points_max = coalesce(p_points_max, b.points_max),
        frozen_top_size = coalesce(p_frozen_top_size, b.frozen_top_size),
        kept_archives = jsonb_strip_nulls(b.kept_archives || coalesce(p_kept_archives, '{}')), reading = coalesce(p_reading, b.reading),
        events_per_minute = nullif(coalesce(p_events_per_minute, b.events_per_minute), 0),
        gain_max = jsonb_strip_nulls(b.gain_max || coalesce(p_gain_max, '{}')), on_violation = coalesce(p_on_violation, b.on_violation),
        snapshots = nullif(coalesce(p_snapshots, b.snapshots), 'none'),
        rolling = CASE WHEN p_rolling IS NULL THEN b.rolling ELSE ARRAY(SELECT r FROM (SELECT DISTINCT r FROM unnest(p_rolling) AS r) x ORDER BY r <> '24h', substring(r FROM '^[0-9]+')::numeric) END,
        tags = CASE WHEN p_tags IS NULL THEN b.tags ELSE ARRAY(SELECT DISTINCT t COLLATE "C" FROM unnest(p_tags) AS t ORDER BY 1) END,
        score_format = coalesce(p_score_format, b.score_format), description = nullif(coalesce(p_description, b.description), ''),
        icon_url = nullif(coalesce(p_icon_url, b.icon_url), ''), colour = nullif(coalesce(p_colour, b.colour), ''), tiers = coalesce(p_tiers, b.tiers), segments = coalesce(p_segments, b.segments),
        buckets = coalesce(p_buckets, b.buckets)
    WHERE b.id = v_board.id
    RETURNING * INTO v_new;
    IF (v_new.mode, v_new.score_order, v_new.ties, v_new.lanes, v_new.time_zone, v_new.segments)
           <> (v_board.mode, v_board.score_order, v_board.ties, v_board.lanes, v_board.time_zone, v_board.segments)
       AND (EXISTS (SELECT FROM centile_store.periods WHERE board_id = v_board.id AND kind <> 'rolling')
            -- A lane may have batches without scores: see centile_store.move_player.
            OR EXISTS (SELECT FROM centile_store.score_transactions WHERE board_id = v_board.id)
            OR EXISTS (SELECT FROM centile_store.quarantine WHERE board_id = v_board.id)) THEN
        IF v_board.mode = 'combined' THEN
            RAISE EXCEPTION 'board % has a ranking: order, ties and time zone cannot change any more', p_slug
                USING ERRCODE = 'CB409', DETAIL = 'board_has_events', HINT = 'Create another combined board.';
        END IF;
        RAISE EXCEPTION 'board % has events: mode, order, ties, lanes, time zone and segments cannot change any more', p_slug
            USING ERRCODE = 'CB409', DETAIL = 'board_has_events', HINT = 'Create another board and import the events into it.';
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
    PERFORM centile_store.note_act(p_actor, 'change_board', v_board.id, v_was, centile_store.board_rules(v_board.id), p_slug);
    RETURN v_board.id;
END
$$;

COMMENT ON FUNCTION centile.update_board(text, text, text, text, text, smallint, text, bigint, bigint, integer, jsonb, text, integer, jsonb, text, text, text[], text, text[], text, text, text, text, text[], text[], text) IS
'Changes the rules of a board and returns its id. p_tags, p_tiers and p_segments replace all earlier values, and an empty text removes description, icon or colour. Example: SELECT centile.update_board(''main'', p_title => ''Main board'', p_kept_archives => ''{"day": 30}'');';
