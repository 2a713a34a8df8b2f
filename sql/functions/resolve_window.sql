-- For selectors such as rolling:7d and rolling:7d-2024-01-15. The next window cannot be read yet.
-- current_from: -infinity unless the selector means another window before this instant. No row if
-- there is no such window.
CREATE OR REPLACE FUNCTION centile_store.resolve_window(p_board_id integer, p_label text, p_at timestamptz)
RETURNS TABLE (label text, starts_at timestamptz, ends_at timestamptz, current_from timestamptz)
LANGUAGE plpgsql STABLE ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    v_length text := split_part(p_label, '-', 1);
    v_window record;
BEGIN
    SELECT w.* INTO v_window
    FROM centile_store.boards b CROSS JOIN LATERAL centile.rolling_window(v_length, p_at, b.time_zone) w
    WHERE b.id = p_board_id AND v_length = ANY (b.rolling);
    IF p_label IN (v_length, v_window.label) THEN
        RETURN QUERY SELECT v_window.label, v_window.starts_at, v_window.ends_at,
            CASE p_label WHEN v_length THEN v_window.current_from ELSE '-infinity' END
        WHERE v_window.label IS NOT NULL;
        RETURN;
    END IF;
    -- A former window that is still open, or whose archive is kept.
    RETURN QUERY
    SELECT p.label, p.starts_at, p.ends_at, timestamptz '-infinity'
    FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = 'rolling' AND p.label = p_label AND (p.state <> 'closed' OR p.archive_revision > 0)
      AND (p.ends_at <= v_window.ends_at OR v_window.label IS NULL);
END
$$;

COMMENT ON FUNCTION centile_store.resolve_window(integer, text, timestamptz) IS
'The rolling window that a selector means. Example: SELECT * FROM centile_store.resolve_window(1, ''7d'', now());';
