-- One process closes, refreshes and drops at a time. Held by the session until it ends, so that a killed one lets go by itself.
CREATE OR REPLACE FUNCTION centile_store.try_closing_lock() RETURNS boolean
LANGUAGE sql VOLATILE
RETURN pg_try_advisory_lock(1128615508, -1);

COMMENT ON FUNCTION centile_store.try_closing_lock() IS
'Takes the lock of whoever closes periods, if it is free. Example: SELECT centile_store.try_closing_lock();';
