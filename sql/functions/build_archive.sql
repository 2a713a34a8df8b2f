-- The second step of closing. Replaces the view of an interrupted attempt, which no statement reads
-- while the period is open.
CREATE OR REPLACE FUNCTION centile_store.build_archive(p_period_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- A million players sort in memory. One session builds archives at a time.
SET work_mem = '128MB'
SET maintenance_work_mem = '128MB'
-- Does not wait long for a reader, such as a dump.
SET lock_timeout = '10s'
-- Silences the notice that no earlier archive exists.
SET client_min_messages = warning
AS $$
DECLARE
    v_period centile_store.periods;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' OR v_period.cut_off_at IS NULL THEN
        RAISE EXCEPTION 'the period is closed or not cut off' USING ERRCODE = 'CB409';
    END IF;
    EXECUTE format('DROP MATERIALIZED VIEW IF EXISTS centile_archive.%I', v_period.archive_name);
    EXECUTE format('CREATE MATERIALIZED VIEW centile_archive.%I AS %s', v_period.archive_name, centile_store.archive_query(p_period_id));
    -- Short index names, because the archive's name may have the maximum length.
    EXECUTE format('CREATE UNIQUE INDEX %I ON centile_archive.%I ("position")', format('archive_%s_position', p_period_id), v_period.archive_name);
    EXECUTE format('CREATE UNIQUE INDEX %I ON centile_archive.%I (user_id)', format('archive_%s_user', p_period_id), v_period.archive_name);
    EXECUTE format('CREATE INDEX %I ON centile_archive.%I (rank)', format('archive_%s_rank', p_period_id), v_period.archive_name);
    EXECUTE format('COMMENT ON MATERIALIZED VIEW centile_archive.%I IS %L', v_period.archive_name,
        (SELECT format('Final ranking of %s %s of board %s%s.', v_period.kind, v_period.label, b.slug, ', segment ' || nullif(v_period.segment, ''))
         FROM centile_store.boards b WHERE b.id = v_period.board_id));
    EXECUTE format('GRANT SELECT ON centile_archive.%I TO centile_reader, centile_service', v_period.archive_name);
    EXECUTE format('ANALYZE centile_archive.%I', v_period.archive_name);
END
$$;

COMMENT ON FUNCTION centile_store.build_archive(bigint) IS
'Builds the archive of a period from the ledger as of the cut-off. Example: SELECT centile_store.cut_off_period(2) IS NOT NULL AS is_cut_off, centile_store.build_archive(2);';
