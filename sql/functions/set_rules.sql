-- Stores rules of a board, named as in the HTTP API, and returns the new row. An absent rule stays as it is;
-- null removes a rule whose column may be null. kept_archives and gain_max change the kinds of period that
-- they name, and null removes a kind. A constraint's comment has the field and the message of its error.
CREATE OR REPLACE FUNCTION centile_store.set_rules(p_board centile_store.boards, p_rules jsonb) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    c_kinds CONSTANT text[] := '{all_time,hour,day,week,month,quarter,year}';
    v_row   jsonb := to_jsonb(p_board);
    v_names jsonb := v_row - '{id,slug,is_template,deleted_at,has_league,score_order,layout_bounds,structure_revision,created_at}'::text[]
        || '{"order": "", "first_layout": "", "combination": ""}';
    v_rules jsonb;
    v_name  text;
    v_error text[];
    v_new   centile_store.boards;
BEGIN
    IF jsonb_typeof(p_rules) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'the rules must be a JSON object' USING ERRCODE = 'CB422', DETAIL = 'rules';
    END IF;
    v_name := (SELECT min(r.name) FROM jsonb_object_keys(p_rules) AS r (name) WHERE NOT v_names ? r.name);
    IF v_name IS NOT NULL THEN
        RAISE EXCEPTION '% is not a rule of a board', quote_literal(v_name) USING ERRCODE = 'CB422', DETAIL = v_name,
            HINT = format('Rules are %s.', (SELECT string_agg(n, ', ' ORDER BY n) FROM jsonb_object_keys(v_names) AS n));
    END IF;
    v_rules := coalesce((
        SELECT jsonb_object_agg(r.name, r.value) FROM jsonb_each(p_rules) AS r (name, value)
        LEFT JOIN pg_attribute a ON a.attrelid = 'centile_store.boards'::regclass AND a.attname = r.name
        WHERE r.value <> 'null' OR NOT a.attnotnull), '{}');
    v_name := (SELECT min(r.name) FROM jsonb_each(v_rules) AS r (name, value)
               WHERE r.value <> 'null' AND r.name = ANY ('{periods,lanes,points_min,points_max,first_layout,kept_archives,events_per_minute,gain_max,on_violation,snapshots,rolling,segments,buckets,refresh_corrected}'));
    IF p_board.mode = 'combined' AND v_name IS NOT NULL THEN
        RAISE EXCEPTION 'does not apply to a combined board' USING ERRCODE = 'CB422', DETAIL = v_name;
    END IF;
    v_name := (SELECT min(r.name) FROM jsonb_each(v_rules) AS r (name, value)
               JOIN pg_attribute a ON a.attrelid = 'centile_store.boards'::regclass AND a.attname = r.name
               WHERE jsonb_typeof(r.value) NOT IN ('null', CASE a.atttypid WHEN 'text'::regtype THEN 'string' WHEN 'boolean'::regtype THEN 'boolean' ELSE jsonb_typeof(r.value) END));
    IF v_name IS NOT NULL THEN
        RAISE EXCEPTION '%', CASE jsonb_typeof(v_row -> v_name) WHEN 'boolean' THEN 'must be true or false' ELSE 'must be a text' END USING ERRCODE = 'CB422', DETAIL = v_name;
    END IF;
    -- Members with the names and values of columns.
    v_rules := v_rules || jsonb_strip_nulls(jsonb_build_object(
        'score_order', v_rules -> 'order',
        'kept_archives', (v_row -> 'kept_archives') || (v_rules -> 'kept_archives'),
        'gain_max', (v_row -> 'gain_max') || (v_rules -> 'gain_max'),
        'layout_bounds', to_jsonb(centile_store.first_bounds(v_rules -> 'first_layout'))));
    v_new := jsonb_populate_record(p_board, v_rules);
    IF EXISTS (SELECT FROM unnest(v_new.periods) AS k GROUP BY k HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'must have each kind at most once' USING ERRCODE = 'CB422', DETAIL = 'periods';
    ELSIF EXISTS (SELECT FROM unnest(v_new.rolling) AS r GROUP BY r HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'must have each length at most once' USING ERRCODE = 'CB422', DETAIL = 'rolling';
    END IF;
    v_new.periods := ARRAY(SELECT k FROM unnest(v_new.periods) AS k ORDER BY array_position(c_kinds, k));
    v_new.default_period := coalesce(v_rules ->> 'default_period', CASE WHEN v_new.default_period = ANY (v_new.periods) THEN v_new.default_period END, v_new.periods[1], v_new.default_period);
    v_new.tiebreak_order := coalesce(v_rules ->> 'tiebreak_order', CASE v_new.ties WHEN 'second' THEN coalesce(v_new.tiebreak_order, 'desc') END);
    v_new.tiebreak_sum := coalesce(v_rules ->> 'tiebreak_sum', CASE WHEN v_new.ties = 'second' AND v_new.mode = 'sum' THEN coalesce(v_new.tiebreak_sum, 'added') END);
    v_new.rolling := ARRAY(SELECT r FROM unnest(v_new.rolling) AS r ORDER BY r <> '24h', substring(r FROM '^[0-9]+')::numeric);
    v_new.tags := ARRAY(SELECT DISTINCT t COLLATE "C" FROM unnest(v_new.tags) AS t ORDER BY 1);
    PERFORM centile_store.check_time_zone(v_new.time_zone) WHERE v_new.time_zone <> p_board.time_zone;
    PERFORM centile_store.check_buckets(v_new.buckets) WHERE v_new.buckets <> p_board.buckets;
    BEGIN
        UPDATE centile_store.boards b
        SET title = v_new.title, mode = v_new.mode, score_order = v_new.score_order, ties = v_new.ties, periods = v_new.periods, time_zone = v_new.time_zone, lanes = v_new.lanes,
            reading = v_new.reading, points_min = v_new.points_min, points_max = v_new.points_max, events_per_minute = v_new.events_per_minute, gain_max = v_new.gain_max,
            on_violation = v_new.on_violation, layout_bounds = v_new.layout_bounds, frozen_top_size = v_new.frozen_top_size, kept_archives = v_new.kept_archives,
            snapshots = v_new.snapshots, rolling = v_new.rolling, tags = v_new.tags, score_format = v_new.score_format, description = v_new.description, icon_url = v_new.icon_url,
            colour = v_new.colour, tiers = v_new.tiers, segments = v_new.segments, buckets = v_new.buckets, default_period = v_new.default_period,
            refresh_corrected = v_new.refresh_corrected, tiebreak_order = v_new.tiebreak_order, tiebreak_sum = v_new.tiebreak_sum
        WHERE b.id = p_board.id
        RETURNING * INTO v_new;
    EXCEPTION WHEN check_violation THEN
        GET STACKED DIAGNOSTICS v_name = CONSTRAINT_NAME;
        v_error := (SELECT regexp_match(obj_description(c.oid, 'pg_constraint'), '^([a-z_]+): (.+)$') FROM pg_constraint c WHERE c.conrelid = 'centile_store.boards'::regclass AND c.conname = v_name);
        RAISE EXCEPTION '%', coalesce(v_error[2], SQLERRM) USING ERRCODE = 'CB422', DETAIL = coalesce(v_error[1], v_name);
    END;
    RETURN v_new;
END
$$;

COMMENT ON FUNCTION centile_store.set_rules(centile_store.boards, jsonb) IS
'Stores rules of a board and returns the new row. Example: SELECT (centile_store.set_rules(b, ''{"title": "Main board"}'')).title FROM centile_store.boards b WHERE b.slug = ''main'';';
