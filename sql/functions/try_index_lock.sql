-- Without this lock, instances that start together would all load the ranking at once.
CREATE OR REPLACE FUNCTION centile_store.try_index_lock() RETURNS boolean
LANGUAGE sql VOLATILE
RETURN pg_try_advisory_lock(1128615511, 0);

COMMENT ON FUNCTION centile_store.try_index_lock() IS
'Tries to take the session lock for loading a large rank index. Example: SELECT centile_store.try_index_lock();';
