-- One process closes, refreshes and drops at a time. The session holds the lock until it ends.
CREATE OR REPLACE FUNCTION centile_store.try_closing_lock() RETURNS boolean
LANGUAGE sql VOLATILE
RETURN pg_try_advisory_lock(1128615508, -1);

COMMENT ON FUNCTION centile_store.try_closing_lock() IS
'Tries to take the session lock for closing periods. Example: SELECT centile_store.try_closing_lock();';
