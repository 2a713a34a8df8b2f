CREATE OR REPLACE FUNCTION centile.verify(p_board text, p_period text DEFAULT 'all_time', p_limit integer DEFAULT 10)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT d.*
    FROM centile_store.source_named(p_board, p_period) s
    CROSS JOIN LATERAL centile_store.differences(
        coalesce(s.archived_period_id, (SELECT g.period_id FROM centile_store.rankings g WHERE g.id = s.ranking_id)), greatest(coalesce(p_limit, 10), 1)) d
$$;

COMMENT ON FUNCTION centile.verify(text, text, integer) IS
'Differences between a period and the ledger, as reported by centile verify: up to p_limit rows of each kind, with the total of the kind. Reads the whole period. Example: SELECT * FROM centile.verify(''main'', ''week:2024-01-15'');';
