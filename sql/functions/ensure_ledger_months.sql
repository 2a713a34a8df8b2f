-- Creates each month standalone and then attaches it, so that readers and writers of the ledger
-- continue. CREATE TABLE … PARTITION OF would wait for all of them, and block others behind it.
-- Call it in a separate transaction, before any other lock. SECURITY DEFINER, because the service
-- owns nothing.
CREATE OR REPLACE FUNCTION centile.ensure_ledger_months(p_from timestamptz DEFAULT now(), p_until timestamptz DEFAULT now() + interval '2 months')
RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $$
DECLARE
    v_month timestamptz;
    v_table text;
    v_made  integer := 0;
BEGIN
    FOR v_month IN SELECT generate_series(date_trunc('month', p_from), p_until, interval '1 month') LOOP
        PERFORM centile_store.ensure_closed_month(v_month) WHERE EXISTS (SELECT FROM centile_store.templates);
        v_table := 'score_transactions_' || to_char(v_month, 'YYYY_MM');
        CONTINUE WHEN to_regclass('centile_store.' || v_table) IS NOT NULL;
        PERFORM pg_advisory_xact_lock(1128615508, 0);
        -- Another session may have created it. to_regclass would repeat its earlier answer.
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_class c
                              WHERE c.relnamespace = 'centile_store'::regnamespace AND c.relname = v_table);
        EXECUTE format('CREATE TABLE centile_store.%I (LIKE centile_store.score_transactions INCLUDING ALL EXCLUDING IDENTITY)', v_table);
        EXECUTE format('COMMENT ON TABLE centile_store.%I IS %L', v_table, 'The ledger of ' || to_char(v_month, 'YYYY-MM') || ' (UTC).');
        -- With this constraint, attaching does not scan.
        EXECUTE format('ALTER TABLE centile_store.%I ADD CONSTRAINT %I CHECK (occurred_at >= %L AND occurred_at < %L)',
            v_table, v_table || '_month', v_month, v_month + interval '1 month');
        EXECUTE format('ALTER TABLE centile_store.score_transactions ATTACH PARTITION centile_store.%I FOR VALUES FROM (%L) TO (%L)',
            v_table, v_month, v_month + interval '1 month');
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END
$$;

COMMENT ON FUNCTION centile.ensure_ledger_months(timestamptz, timestamptz) IS
'Creates the ledger''s missing months between two times and returns their number. Example: SELECT centile.ensure_ledger_months(''2024-02-01'', ''2024-03-31'');';
