-- One snapshot. Counts inside buckets, or searches an archive: at most two of each per tier.
CREATE OR REPLACE FUNCTION centile.tiers(p_board text, p_period text DEFAULT NULL)
RETURNS TABLE (place integer, tier text, rule text, players bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT t.*
    FROM centile_store.source_named(p_board, p_period) s
    CROSS JOIN LATERAL centile_store.tier_counts(s.ranking_id, s.archived_period_id, coalesce(
        (SELECT p.tiers FROM centile_store.periods p WHERE p.id = s.archived_period_id),
        (SELECT b.tiers FROM centile_store.boards b WHERE b.slug = p_board))) t
    ORDER BY t.place
$$;

COMMENT ON FUNCTION centile.tiers(text, text) IS
'The tiers of a period, best first, and their players. A closed period has the tiers of its closing. p_period defaults to the default period of the board. Example: SELECT * FROM centile.tiers(''main'', ''week:2024-01-15'');';
GRANT EXECUTE ON FUNCTION centile.tiers(text, text) TO centile_reader;
