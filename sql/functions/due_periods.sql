-- In the order of closing, with the import that prevents a period from closing. A season that was
-- over when it was created waits an hour for its import. centile_store.release_windows releases the
-- windows that are not archived. Segments come after all whole periods, because there may be many,
-- and are due once their own whole period is closed.
CREATE OR REPLACE FUNCTION centile_store.due_periods(p_period_id bigint DEFAULT NULL)
RETURNS TABLE (period_id bigint, board text, period text, ends_at timestamptz, import_source text, import_is_running boolean)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p.id, b.slug, centile_store.period_name(p.kind, p.label, p.segment), p.ends_at, i.source, i.is_running
    FROM centile_store.periods p
    JOIN centile_store.boards b ON b.id = p.board_id
    JOIN centile_store.periods w ON w.board_id = p.board_id AND w.kind = p.kind AND w.label = p.label AND w.segment = ''
    -- A snapshot has no ranking.
    LEFT JOIN centile_store.rankings r ON r.id = p.ranking_id
    LEFT JOIN LATERAL (
        SELECT i.source, centile_store.is_locked(1128615509, i.id) AS is_running
        FROM centile_store.imports i
        -- It writes nothing into a segment of a closed period.
        WHERE p.id = w.id AND i.board_id = p.board_id AND i.ended_at IS NULL AND i.abandoned_at IS NULL
        ORDER BY 2 DESC, i.id LIMIT 1) i ON true
    WHERE p.state = 'open' AND b.deleted_at IS NULL AND (p.id = w.id OR w.state = 'closed') AND (p.kind <> 'rolling' OR b.kept_archives ? 'rolling' OR p.cut_off_at IS NOT NULL) AND p.ends_at <= statement_timestamp()
      AND (p.id = p_period_id OR w.id = p_period_id
           OR (p_period_id IS NULL AND (p.segment <> '' OR p.ends_at > r.created_at OR p.kind <> 'season' OR r.created_at < statement_timestamp() - interval '1 hour')))
    ORDER BY p.segment <> '', p.ends_at, p.id
$$;

COMMENT ON FUNCTION centile_store.due_periods(bigint) IS
'Periods that are over and not closed. Example: SELECT board, period FROM centile_store.due_periods() LIMIT 3;';
GRANT EXECUTE ON FUNCTION centile_store.due_periods(bigint) TO centile_operator;
