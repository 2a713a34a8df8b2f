-- The second step of closing. Replaces the archive of an interrupted attempt, which no statement
-- reads while the period is open. Returns whether the archive is complete: a period of a template takes
-- several calls.
CREATE OR REPLACE FUNCTION centile_store.build_archive(p_period_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- A million players sort in memory. One session builds archives at a time.
SET work_mem = '128MB'
SET maintenance_work_mem = '128MB'
-- Does not wait long for a reader, such as a dump.
SET lock_timeout = '10s'
AS $$
DECLARE
    v_period centile_store.periods;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' OR v_period.cut_off_at IS NULL THEN
        RAISE EXCEPTION 'the period is closed or not cut off' USING ERRCODE = 'CB409';
    ELSIF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
        PERFORM centile_store.ensure_closed_month(v_period.ends_at);
        RETURN centile_store.close_boards(p_period_id) = 0;
    END IF;
    PERFORM centile_store.remove_archive(p_period_id, v_period.archive_name);
    -- Computed from the standings of all time, a snapshot has no definition that a refresh could
    -- run.
    PERFORM CASE v_period.kind
        WHEN 'snapshot' THEN centile_store.create_archive(p_period_id, v_period.archive_name, 'TABLE',
            centile_store.archive_query(p_period_id, format('SELECT * FROM centile_store.snapshot_entries(%s)', p_period_id)))
        ELSE centile_store.create_archive(p_period_id, v_period.archive_name, 'MATERIALIZED VIEW', centile_store.archive_query(p_period_id)
            || format(' WHERE (SELECT centile_store.check_refresh(c.period_id, c.batches) FROM centile_store.cut_offs c WHERE c.period_id = %s)', p_period_id)) END;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.build_archive(bigint) IS
'Builds the archive of a period as of the cut-off. Example: SELECT centile_store.cut_off_period(2) IS NOT NULL AS is_cut_off, centile_store.build_archive(2);';
