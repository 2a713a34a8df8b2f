-- One process refreshes combined boards at a time. The session holds the lock until it ends.
CREATE OR REPLACE FUNCTION centile_store.try_combining_lock() RETURNS boolean
LANGUAGE sql VOLATILE
RETURN pg_try_advisory_lock(1128615508, -2);

COMMENT ON FUNCTION centile_store.try_combining_lock() IS
'Tries to take the session lock for refreshing combined boards. Example: SELECT centile_store.try_combining_lock();';
