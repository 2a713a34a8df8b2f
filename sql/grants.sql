-- Rights on functions and views, run after all of their files. Each file grants readers their
-- rights. The service has all of both schemas, with its own rights except where a function is
-- SECURITY DEFINER. Migrations grant the rights on tables.
DO $$
DECLARE
    v_name text;
BEGIN
    FOR v_name IN SELECT a.name FROM centile_store.applied_objects a LOOP
        IF v_name LIKE 'ROUTINE %' THEN
            EXECUTE format('REVOKE EXECUTE ON %s FROM PUBLIC', v_name);
            EXECUTE format('GRANT EXECUTE ON %s TO centile_service', v_name);
        ELSE
            EXECUTE format('GRANT SELECT ON TABLE %s TO centile_service', substr(v_name, 6));
        END IF;
    END LOOP;
END
$$;

-- The first run of `centile migrate` creates it; the service reads it when it starts.
REVOKE ALL ON centile_store.schema_history FROM centile_service;
GRANT SELECT ON centile_store.schema_history TO centile_service;
