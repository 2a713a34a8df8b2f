-- An import holds an advisory lock of its own for as long as its process lives; without it, it was cut short.
CREATE OR REPLACE FUNCTION centile_store.import_is_running(p_import_id bigint) RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1128615509 AND l.objid = p_import_id AND l.objsubid = 2
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()));

COMMENT ON FUNCTION centile_store.import_is_running(bigint) IS
'Whether the process of an import is alive. Example: SELECT centile_store.import_is_running(1);';
