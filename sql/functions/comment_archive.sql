-- REFRESH MATERIALIZED VIEW takes the same cut-off, so it changes nothing. Callers have the owner's
-- rights.
CREATE OR REPLACE FUNCTION centile_store.comment_archive(p_period_id bigint, p_name text, p_kind text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_period record;
BEGIN
    SELECT p.kind, p.label, p.segment, b.slug, centile_store.period_name(p.kind, p.label, p.segment) AS name INTO STRICT v_period
    FROM centile_store.periods p JOIN centile_store.boards b ON b.id = p.board_id WHERE p.id = p_period_id;
    EXECUTE format('COMMENT ON %s centile_archive.%I IS %L', p_kind, p_name, concat_ws(' ',
        format('Final ranking of %s %s of board %s%s.', v_period.kind, v_period.label, v_period.slug, ', segment ' || nullif(v_period.segment, '')),
        format('With ids and names: SELECT * FROM centile.ranking(%L, %L).', v_period.slug, v_period.name),
        CASE p_kind WHEN 'MATERIALIZED VIEW' THEN 'REFRESH MATERIALIZED VIEW gives the same rows again: only centile refresh adds corrections. After WITH NO DATA, reads fail until either has run.' END));
END
$$;

COMMENT ON FUNCTION centile_store.comment_archive(bigint, text, text) IS
'Comments on an archive: what it holds, how to read names, and how to refresh it. Example: SELECT centile_store.comment_archive(p.period_id, ''main_week_2024_01_15'', ''MATERIALIZED VIEW'') FROM centile.periods p WHERE p.archive = ''centile_archive.main_week_2024_01_15'';';
