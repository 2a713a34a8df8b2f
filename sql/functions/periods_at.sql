-- Whole periods, without segments: by one look-up per kind, however many periods there are, and the
-- seasons, the rolling windows that are not closed, and the snapshots taken. A closed period has no
-- ranking. A period that is cut off accepts no score, but acts still change its ranking until it is
-- closed.
CREATE OR REPLACE FUNCTION centile_store.periods_at(p_board_id integer, p_kinds text[], p_at timestamptz)
RETURNS TABLE (period_id bigint, kind text, period text, ranking_id bigint, is_cut_off boolean)
LANGUAGE sql STABLE
AS $$
    SELECT p.id, p.kind, CASE p.kind WHEN 'all_time' THEN p.kind ELSE p.kind || ':' || p.label END, p.ranking_id, p.cut_off_at IS NOT NULL
    FROM unnest(p_kinds) AS k (kind)
    CROSS JOIN LATERAL (
        SELECT * FROM centile_store.periods p
        WHERE p.board_id = p_board_id AND p.kind = k.kind AND p.segment = '' AND p.starts_at <= p_at
        ORDER BY p.starts_at DESC LIMIT 1) p
    WHERE p_at < p.ends_at
    UNION ALL
    SELECT p.id, p.kind, 'season:' || p.label, p.ranking_id, p.cut_off_at IS NOT NULL
    FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = 'season' AND p.segment = '' AND p.starts_at <= p_at AND p_at < p.ends_at
    UNION ALL
    SELECT p.id, p.kind, 'rolling:' || p.label, p.ranking_id, p.cut_off_at IS NOT NULL
    FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = 'rolling' AND p.state <> 'closed' AND p.ranking_id IS NOT NULL AND p.starts_at <= p_at AND p_at < p.ends_at
    UNION ALL
    -- Only corrections, voids and imports have times before the end of a snapshot.
    SELECT p.id, p.kind, 'snapshot:' || p.label, NULL, true
    FROM centile_store.periods p
    WHERE p.board_id = p_board_id AND p.kind = 'snapshot' AND p_at < p.ends_at AND p.cut_off_at IS NOT NULL AND p.archive_dropped_at IS NULL
$$;

COMMENT ON FUNCTION centile_store.periods_at(integer, text[], timestamptz) IS
'The periods of a board that hold a time, with their current rankings. Example: SELECT * FROM centile_store.periods_at(1, ''{all_time,week}'', ''2024-01-15 12:00Z'');';
