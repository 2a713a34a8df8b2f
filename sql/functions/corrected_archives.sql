-- Archives that lack a correction: all, or with p_age those of boards with the rule
-- refresh_corrected whose last correction is that old. A segment is listed only without its whole
-- period, which takes it along.
CREATE OR REPLACE FUNCTION centile_store.corrected_archives(p_age interval DEFAULT NULL) RETURNS TABLE (period_id bigint, board text, period text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.id, b.slug, centile_store.period_name(p.kind, p.label, p.segment)
    FROM centile_store.periods p
    JOIN centile_store.boards b ON b.id = p.board_id
    JOIN centile_store.periods w ON w.board_id = p.board_id AND w.kind = p.kind AND w.label = p.label AND w.segment = ''
    WHERE p.frozen_top IS NOT NULL AND p.corrected_at IS NOT NULL AND (p.id = w.id OR w.corrected_at IS NULL)
      AND (p_age IS NULL OR (b.refresh_corrected AND p.corrected_at <= clock_timestamp() - p_age))
    ORDER BY p.ends_at, p.id
$$;

COMMENT ON FUNCTION centile_store.corrected_archives(interval) IS
'Archives that lack a correction, on all boards or on those with the rule refresh_corrected. Example: SELECT centile_store.mark_corrected(ARRAY(SELECT p.period_id FROM centile.periods p WHERE p.archive LIKE ''%week%'')), c.board, c.period FROM centile_store.corrected_archives() c;';
GRANT EXECUTE ON FUNCTION centile_store.corrected_archives(interval) TO centile_operator;
