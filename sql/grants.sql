-- Rights on functions and views, run after all of their files. Each file grants readers their
-- rights. The service has all of both schemas, with its own rights except where a function is
-- SECURITY DEFINER. Migrations grant the rights on tables.
REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA centile, centile_store FROM PUBLIC;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA centile, centile_store TO centile_service;
GRANT SELECT ON ALL TABLES IN SCHEMA centile TO centile_service;

-- The first run of `centile migrate` creates it; the service reads it when it starts.
REVOKE ALL ON centile_store.schema_history FROM centile_service;
GRANT SELECT ON centile_store.schema_history TO centile_service;
