-- Whether the session that builds a ranking beside the live one lives: it holds a lock of its own.
CREATE OR REPLACE FUNCTION centile_store.ranking_is_being_built(p_ranking_id bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l
                   WHERE l.locktype = 'advisory' AND l.classid = 1128615510 AND l.objid = p_ranking_id AND l.objsubid = 2
                     AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))
$$;

COMMENT ON FUNCTION centile_store.ranking_is_being_built(bigint) IS
'Whether the process that builds a ranking is alive. Example: SELECT centile_store.ranking_is_being_built(1);';
