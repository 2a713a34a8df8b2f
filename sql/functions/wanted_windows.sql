-- The current window of each length, and the next one from an hour before its time (of 24h: ten
-- minutes), current ones first. at: an instant at which it is current.
CREATE OR REPLACE FUNCTION centile_store.wanted_windows()
RETURNS TABLE (board_id integer, board text, length text, at timestamptz, label text, is_current boolean)
LANGUAGE sql STABLE
AS $$
    SELECT b.id, b.slug, r.length, w.current_from, w.label, w.is_current
    FROM centile_store.boards b
    CROSS JOIN unnest(b.rolling) AS r (length)
    CROSS JOIN LATERAL centile.rolling_window(r.length, statement_timestamp(), b.time_zone) AS c
    CROSS JOIN LATERAL (
        SELECT c.*, true AS is_current
        UNION ALL
        SELECT n.*, false FROM centile.rolling_window(r.length, c.ends_at, b.time_zone) n
        WHERE c.ends_at <= statement_timestamp() + CASE r.length WHEN '24h' THEN interval '10 minutes' ELSE interval '1 hour' END) w
    WHERE NOT EXISTS (SELECT FROM centile_store.periods p
                      WHERE p.board_id = b.id AND p.kind = 'rolling' AND p.label = w.label
                        AND (p.state = 'open' OR p.cut_off_at IS NOT NULL
                             -- Another session is filling it.
                             OR EXISTS (SELECT FROM centile_store.rankings g
                                        WHERE g.period_id = p.id AND g.released_at IS NULL AND centile_store.is_locked(1128615510, g.id))))
    ORDER BY w.is_current DESC, w.ends_at, b.id, r.length
$$;

COMMENT ON FUNCTION centile_store.wanted_windows() IS
'Rolling windows that should accept scores and do not yet. Example: SELECT board, label, is_current FROM centile_store.wanted_windows();';
