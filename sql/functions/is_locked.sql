-- An import and a rebuild each hold an advisory lock while their session lives.
CREATE OR REPLACE FUNCTION centile_store.is_locked(p_class integer, p_object bigint) RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = p_class::oid AND l.objid = centile_store.lock_key(p_object)::oid AND l.objsubid = 2
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()));

COMMENT ON FUNCTION centile_store.is_locked(integer, bigint) IS
'Whether a session holds an advisory lock: class 1128615509 for imports, 1128615510 for rebuilds. Example: SELECT centile_store.is_locked(1128615509, 1);';
