-- Who may call what; run after all functions and views, which were made anew and so belong to
-- everybody again. Readers have what each file grants them and nothing else; the service has all of
-- both schemas, by its own rights except where a function says SECURITY DEFINER. Rights on tables
-- are granted by the migrations that make them.
REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA centile, centile_store FROM PUBLIC;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA centile, centile_store TO centile_service;
GRANT SELECT ON ALL TABLES IN SCHEMA centile TO centile_service;

-- Made by the first run of `centile migrate`, beside the migrations; the service looks into it when
-- it starts.
REVOKE ALL ON centile_store.schema_history FROM centile_service;
GRANT SELECT ON centile_store.schema_history TO centile_service;
