-- A cut-off raises the time of the lanes to the end of its period, and each later reset raises it
-- by a microsecond. While the clock is behind that time, scores follow at it. If the board has had
-- no event since a cut-off, the cut-off has the time of the last one. Refreshed cut-offs are left
-- out: their batches are newer. Workers of a cluster have no rows of cut_offs.
CREATE OR REPLACE FUNCTION centile.last_event_at(p_board_id integer, p_lane_at timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (SELECT coalesce(max(c.last_at) FILTER (WHERE p.archive_revision < 2 AND c.batches = centile_store.lane_batches(b.id, b.lanes)), p_lane_at)
            FROM centile_store.periods p
            JOIN centile_store.boards b ON b.id = p.board_id
            LEFT JOIN centile_store.cut_offs c ON c.period_id = p.id
            WHERE p.board_id = p_board_id AND p.segment = '' AND p.cut_off_at IS NOT NULL
              AND p.ends_at BETWEEN p_lane_at - interval '1 second' AND p_lane_at
            HAVING count(*) > 0);
END
$$;

COMMENT ON FUNCTION centile.last_event_at(integer, timestamptz) IS
'The time of a board''s last event, if a cut-off has set the time of its lanes to p_lane_at; NULL otherwise. Example: SELECT centile.last_event_at(1, now());';
GRANT EXECUTE ON FUNCTION centile.last_event_at(integer, timestamptz) TO centile_reader;
