-- pg_restore copies the rows of a table, but computes a materialized view from the ledger. Readers
-- wait only for the exchange at the end. If a reader stays open, the call fails after ten seconds.
CREATE OR REPLACE FUNCTION centile.convert_archive(p_board text, p_period text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET maintenance_work_mem = '128MB'
SET lock_timeout = '10s'
AS $$
DECLARE
    v_period_id bigint := (centile_store.source_named(p_board, p_period)).archived_period_id;
    v_name      text;
    v_table     text := 'table_of_' || v_period_id;
BEGIN
    -- One refresh or conversion of a period at a time.
    PERFORM FROM centile_store.cut_offs c WHERE c.period_id = v_period_id FOR UPDATE;
    SELECT c.relname INTO v_name
    FROM centile_store.periods p
    JOIN pg_catalog.pg_class c ON c.relnamespace = 'centile_archive'::regnamespace AND c.relname = p.archive_name AND c.relkind = 'm'
    WHERE p.id = v_period_id AND p.frozen_top IS NOT NULL AND p.kind <> 'all_time';
    IF v_name IS NULL THEN
        RETURN false;
    END IF;
    PERFORM centile_store.create_archive(v_period_id, v_table, 'TABLE', format('SELECT * FROM centile_archive.%I', v_name));
    PERFORM centile_store.remove_archive(v_period_id, v_name);
    EXECUTE format('ALTER TABLE centile_archive.%I RENAME TO %I', v_table, v_name);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile.convert_archive(text, text) IS
'Turns the archive of a closed period from a materialized view into a table, and returns whether it was one. Example: SELECT centile.convert_archive(''main'', ''week:2024-01-15'');';
