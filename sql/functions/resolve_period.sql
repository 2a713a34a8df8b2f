-- By the database's clock: 'week', 'week:previous', 'week:-4', 'week:2024-01-15', 'season:spring',
-- 'rolling:7d'. 'week@country:DE' means a segment of the week. No row if the period cannot exist;
-- no period_id if it has no scores. The selector means this period from valid_from to valid_until,
-- so that the service may cache it. p_owner_id: the board's template, or the board, if the caller knows
-- it. archive_revision is NULL unless the period is closed and its archive kept; a segment without
-- scores has that of its whole period. The period_id of a closed period on a template's board is the id
-- of the board's results in closed_boards.
CREATE OR REPLACE FUNCTION centile.resolve_period(p_board_id integer, p_selector text, p_owner_id integer DEFAULT NULL)
RETURNS TABLE (kind text, label text, starts_at timestamptz, ends_at timestamptz, period_id bigint, ranking_id bigint, state text,
               archive_revision integer, valid_from timestamptz, valid_until timestamptz)
LANGUAGE plpgsql STABLE ROWS 1 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_now   timestamptz := statement_timestamp();
    v_whole text := split_part(p_selector, '@', 1);
    v_segment text := substr(p_selector, length(v_whole) + 2);
    v_kind  text := split_part(v_whole, ':', 1);
    v_label text := nullif(substr(v_whole, length(v_kind) + 2), '');
    v_zone  text;
    v_bounds record;
    v_from  timestamptz := '-infinity'; v_until timestamptz := 'infinity';
    v_owner integer := coalesce(p_owner_id, centile_store.owner_of(p_board_id));
    v_is_template boolean;
BEGIN
    SELECT b.time_zone, b.is_template INTO v_zone, v_is_template FROM centile_store.boards b WHERE b.id = v_owner AND b.deleted_at IS NULL AND (p_board_id <= 0 OR p_board_id = v_owner OR EXISTS (SELECT FROM centile_store.template_boards t WHERE t.id = p_board_id)) AND (v_kind = ANY (b.periods) OR v_kind IN ('season', 'snapshot', 'rolling'))
      AND (v_whole = p_selector OR (split_part(v_segment, ':', 1) = ANY (b.segments) AND v_segment ~ '^[^:]+:[^\u0001-\u001f\u007f-\u009f]{1,64}$'));
    IF NOT FOUND THEN
        RETURN;
    ELSIF v_kind IN ('season', 'snapshot') THEN
        SELECT p.label, p.starts_at, p.ends_at INTO v_bounds
        FROM centile_store.periods p WHERE p.board_id = v_owner AND p.kind = v_kind AND p.label = v_label AND p.segment = ''
          -- A snapshot that is being taken does not exist yet.
          AND (v_kind = 'season' OR p.state = 'closed');
        v_until := CASE WHEN v_now < v_bounds.starts_at THEN v_bounds.starts_at WHEN v_now < v_bounds.ends_at THEN v_bounds.ends_at ELSE v_until END;
    ELSIF v_kind = 'rolling' THEN
        SELECT w.* INTO v_bounds FROM centile_store.resolve_window(v_owner, v_label, v_now) w;
        v_from := v_bounds.current_from;
        v_until := CASE WHEN v_now < v_bounds.ends_at THEN v_bounds.ends_at ELSE v_until END;
    ELSIF v_label IS NULL THEN
        SELECT * INTO v_bounds FROM centile_store.period_holding(v_owner, v_kind, v_now, v_zone);
        v_from := v_bounds.starts_at;
        v_until := v_bounds.ends_at;
    ELSIF v_label = 'previous' OR v_label ~ '^-([1-9][0-9]?|[12][0-9]{2}|3[0-5][0-9]|36[0-6])$' THEN
        SELECT * INTO v_bounds FROM centile_store.period_holding(v_owner, v_kind, v_now, v_zone);
        v_from := v_bounds.starts_at;
        v_until := v_bounds.ends_at;
        FOR v_back IN 1 .. CASE v_label WHEN 'previous' THEN 1 ELSE -v_label::integer END LOOP
            SELECT * INTO v_bounds FROM centile_store.period_holding(v_owner, v_kind, v_bounds.starts_at - interval '1 microsecond', v_zone)
            WHERE isfinite(v_bounds.starts_at);
        END LOOP;
    ELSE
        SELECT c.label, coalesce(p.starts_at, c.starts_at) AS starts_at, coalesce(p.ends_at, c.ends_at) AS ends_at INTO v_bounds
        FROM centile.period_named(v_kind, v_label, v_zone) c
        LEFT JOIN centile_store.periods p ON p.board_id = v_owner AND p.kind = v_kind AND p.label = c.label AND p.segment = '';
        -- The service caches the period as open.
        v_until := CASE WHEN v_now < v_bounds.starts_at THEN v_bounds.starts_at WHEN v_now < v_bounds.ends_at THEN v_bounds.ends_at ELSE v_until END;
    END IF;
    IF v_bounds.label IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT v_kind, v_bounds.label, v_bounds.starts_at, v_bounds.ends_at, CASE WHEN v_is_template AND p.state = 'closed' AND v_owner <> p_board_id THEN c.id ELSE p.id END,
           CASE WHEN v_owner = p_board_id OR p.ranking_id IS NULL THEN p.ranking_id ELSE centile_store.ranking_of(p_board_id, p.id) END,
           CASE WHEN p.state = 'preparing' OR (v_kind = 'rolling' AND p.ranking_id IS NULL AND p.frozen_top IS NULL AND v_now < v_bounds.ends_at) THEN 'preparing'
                -- No player belongs to this segment of a closed period.
                WHEN p.state = 'closed' OR (p.id IS NULL AND w.state = 'closed') THEN 'closed'
                WHEN v_bounds.ends_at <= v_now THEN 'due' WHEN v_now < v_bounds.starts_at THEN 'upcoming' ELSE 'open' END,
           CASE WHEN p.archive_dropped_at IS NOT NULL THEN NULL WHEN c.id IS NOT NULL THEN c.archive_revision WHEN p.frozen_top IS NOT NULL THEN p.archive_revision WHEN p.id IS NULL AND w.frozen_top IS NOT NULL THEN w.archive_revision END, v_from, v_until
    FROM (SELECT) one
    LEFT JOIN centile_store.periods w ON v_segment <> '' AND w.board_id = v_owner AND w.kind = v_kind AND w.label = v_bounds.label AND w.segment = ''
    LEFT JOIN centile_store.periods p ON p.board_id = v_owner AND p.kind = v_kind AND p.label = v_bounds.label AND p.segment = v_segment
    LEFT JOIN LATERAL centile_store.closed_board(p_board_id, p) c ON v_is_template AND p.state = 'closed';
END
$$;

COMMENT ON FUNCTION centile.resolve_period(integer, text, integer) IS
'The period that a selector means now. Example: SELECT r.kind, r.label, r.starts_at, r.ends_at, r.period_id, r.state FROM centile.boards b CROSS JOIN LATERAL centile.resolve_period(b.board_id, ''week:2024-01-15'') r WHERE b.slug = ''main'';';
GRANT EXECUTE ON FUNCTION centile.resolve_period(integer, text, integer) TO centile_reader;
