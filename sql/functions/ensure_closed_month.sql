-- Attaches the tables, so that readers continue: see centile.ensure_ledger_months, which creates the next
-- months. An import may open older ones.
CREATE OR REPLACE FUNCTION centile_store.ensure_closed_month(p_ends_at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    v_suffix text := to_char(p_ends_at, 'YYYY_MM');
    v_table  text;
BEGIN
    FOREACH v_table IN ARRAY '{closed_boards,closed_results}'::text[] LOOP
        CONTINUE WHEN to_regclass(format('centile_store.%I', v_table || '_' || v_suffix)) IS NOT NULL;
        PERFORM pg_advisory_xact_lock(1128615508, 0);
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_class c
                              WHERE c.relnamespace = 'centile_store'::regnamespace AND c.relname = v_table || '_' || v_suffix);
        EXECUTE format('CREATE TABLE centile_store.%I (LIKE centile_store.%I INCLUDING ALL)', v_table || '_' || v_suffix, v_table);
        EXECUTE format('ALTER TABLE centile_store.%I ATTACH PARTITION centile_store.%I FOR VALUES FROM (%s) TO (%s)', v_table, v_table || '_' || v_suffix,
            centile_store.first_closed_id(p_ends_at), centile_store.first_closed_id(date_trunc('month', p_ends_at) + interval '1 month'));
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.ensure_closed_month(timestamptz) IS
'Creates the tables for results of periods of templates that end in the month (UTC) of a time. Example: SELECT centile_store.ensure_closed_month(''2024-01-22 00:00Z'');';
