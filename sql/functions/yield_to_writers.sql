-- A statement that writes many rows delays commits: each commit waits until all earlier WAL is on
-- the disk. Within a transaction, pg_stat_activity keeps its list of sessions, but reads their wait
-- events anew. It hides those of other logins from all but members of pg_read_all_stats; so this
-- pauses only for sessions of the same login. PostgreSQL 17 writes WalSync and WalWrite.
CREATE OR REPLACE FUNCTION centile_store.yield_to_writers() RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    FOR n IN 1..2 LOOP
        EXIT WHEN NOT EXISTS (
            SELECT FROM pg_catalog.pg_stat_activity a
            WHERE lower(a.wait_event) IN ('walsync', 'walwrite') AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid());
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.yield_to_writers() IS
'Pauses while other sessions wait for the write-ahead log, for about 10 ms at most. Example: SELECT centile_store.yield_to_writers();';
