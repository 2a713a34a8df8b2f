CREATE OR REPLACE FUNCTION centile_store.unknown_layouts(
    p_rankings bigint[], p_known_rankings bigint[], p_known_times timestamptz[], OUT rankings bigint[], OUT times timestamptz[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    SELECT array_agg(g.id ORDER BY g.id), array_agg(g.laid_out_at ORDER BY g.id) INTO rankings, times
    FROM (SELECT g.id, g.laid_out_at
          FROM unnest(p_rankings) AS r (id)
          CROSS JOIN LATERAL (SELECT g.id, g.laid_out_at FROM centile_store.rankings g WHERE g.id = r.id LIMIT 1) g
          EXCEPT
          SELECT k.id, k.laid_out_at FROM unnest(p_known_rankings, p_known_times) AS k (id, laid_out_at)) g;
END
$$;

COMMENT ON FUNCTION centile_store.unknown_layouts(bigint[], bigint[], timestamptz[]) IS
'Rankings whose layouts the caller does not know, or knows with another time. Example: SELECT rankings FROM centile_store.unknown_layouts(''{1}'', ''{}'', ''{}'');';
