-- So that no board gets a name that matches a template, and no two templates overlap.
CREATE OR REPLACE FUNCTION centile_store.lock_names() RETURNS void
LANGUAGE sql VOLATILE
AS $$
    SELECT pg_advisory_xact_lock(1128615508, -4)
$$;

COMMENT ON FUNCTION centile_store.lock_names() IS
'Serializes the creation of boards and templates for this transaction. Example: SELECT centile_store.lock_names();';
