-- A statement that writes many rows delays commits: each commit waits until all earlier WAL is on
-- the disk. Wait events are current even within a transaction.
CREATE OR REPLACE FUNCTION centile_store.yield_to_writers() RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    FOR n IN 1..10 LOOP
        EXIT WHEN NOT EXISTS (
            SELECT FROM pg_catalog.pg_stat_activity a
            WHERE a.wait_event IN ('WALSync', 'WALWrite') AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid());
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.yield_to_writers() IS
'Pauses while other sessions wait for the write-ahead log, for about 50 ms at most. Example: SELECT centile_store.yield_to_writers();';
