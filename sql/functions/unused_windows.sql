CREATE OR REPLACE FUNCTION centile_store.unused_windows(p_all boolean DEFAULT false) RETURNS TABLE (board_id integer, period_id bigint)
LANGUAGE sql STABLE
AS $$
    SELECT p.board_id, p.id
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id
    -- A window with a cut-off is being closed, which archives it.
    WHERE p.kind = 'rolling' AND p.state <> 'closed' AND p.cut_off_at IS NULL
      AND (p_all OR split_part(p.label, '-', 1) <> ALL (b.rolling)
           OR (p.ends_at <= statement_timestamp() - interval '5 minutes' AND (p.state = 'preparing' OR NOT b.kept_archives ? 'rolling')))
$$;

COMMENT ON FUNCTION centile_store.unused_windows(boolean) IS
'Rolling windows to be released: see centile_store.release_windows. Example: SELECT * FROM centile_store.unused_windows();';
