CREATE OR REPLACE FUNCTION centile_store.import_periods(
    p_board_id integer, p_kinds text[], p_times timestamptz[], p_at timestamptz,
    OUT ids bigint[], OUT kinds text[], OUT labels text[], OUT starts timestamptz[], OUT ends timestamptz[], OUT rankings bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    SELECT array_agg(q.id), array_agg(q.kind), array_agg(q.label), array_agg(nullif(q.starts_at, '-infinity')), array_agg(nullif(q.ends_at, 'infinity')),
           array_agg(CASE WHEN q.cut_off_at IS NULL THEN q.ranking_id END)
    INTO ids, kinds, labels, starts, ends, rankings
    FROM centile_store.periods q
    WHERE q.id IN (SELECT p.period_id FROM (SELECT DISTINCT coalesce(t.at, p_at) AS at FROM unnest(p_times) AS t (at)) t
                   CROSS JOIN LATERAL centile_store.periods_at(p_board_id, p_kinds, t.at) p);
END
$$;

COMMENT ON FUNCTION centile_store.import_periods(integer, text[], timestamptz[], timestamptz) IS
'The periods of a board that hold the times of imported events; infinite bounds are NULL. Example: SELECT labels FROM centile_store.import_periods(1, ''{week}'', ''{2024-01-16}'', now());';
