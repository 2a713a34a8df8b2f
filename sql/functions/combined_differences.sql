-- The sources may have changed since, so the ranking is only compared with its own parts.
CREATE OR REPLACE FUNCTION centile_store.combined_differences(p_period_id bigint)
RETURNS TABLE (kind text, subject text, expected jsonb, found jsonb, total bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_period centile_store.periods;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                   WHERE c.relnamespace = 'centile_archive'::regnamespace AND c.relname = v_period.archive_name AND c.relkind = 'm' AND c.relispopulated) THEN
        RETURN QUERY SELECT 'archive missing', 'centile_archive.' || v_period.archive_name, to_jsonb('a materialized view'::text), NULL::jsonb, 1::bigint;
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT ''archive players'', ''players of the combined ranking'', to_jsonb(a.players), to_jsonb($1), 1::bigint
         FROM (SELECT count(*) AS players FROM centile_archive.%I) a WHERE a.players <> $1', v_period.archive_name)
    USING v_period.archive_players;
    RETURN QUERY EXECUTE format(
        'SELECT ''frozen top'', format(''position %%s'', t.place), to_jsonb(a), t.row, count(*) OVER ()
         FROM jsonb_array_elements(convert_from($1, ''UTF8'')::jsonb -> ''rows'') WITH ORDINALITY AS t (row, place)
         LEFT JOIN centile_archive.%I a ON a."position" = t.place
         WHERE (t.row -> ''internal_id'', t.row -> ''rank'', t.row -> ''score'') IS DISTINCT FROM (to_jsonb(a.user_id), to_jsonb(a.rank), to_jsonb(a.score))
         ORDER BY t.place LIMIT 10', v_period.archive_name)
    USING v_period.frozen_top;
END
$$;

COMMENT ON FUNCTION centile_store.combined_differences(bigint) IS
'Differences between the view of a combined board, its number of players and its frozen top. Example: SELECT d.* FROM centile.periods p CROSS JOIN LATERAL centile_store.combined_differences(p.period_id) d WHERE p.archive IS NOT NULL;';
