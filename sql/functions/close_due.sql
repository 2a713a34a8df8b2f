-- A procedure, because each step is a transaction of its own: the cut-off must be committed before
-- the archive is built, and writers must not wait for the archive. The first COMMIT raises 2D000
-- inside a transaction block. The filling of rolling windows is left to the service and to centile
-- close --due.
CREATE OR REPLACE PROCEDURE centile.close_due()
LANGUAGE plpgsql
AS $$
DECLARE
    v_busy boolean := false;
BEGIN
    COMMIT;
    PERFORM centile_store.open_snapshots();
    LOOP
        COMMIT;
        EXIT WHEN NOT centile_store.release_unused_windows();
    END LOOP;
    CALL centile_store.close_periods(NULL, v_busy);
END
$$;

COMMENT ON PROCEDURE centile.close_due() IS
'Closes all periods that are over, and takes snapshots. It can be repeated after an interruption, and does nothing while another process closes. Example: CALL centile.close_due();';
GRANT EXECUTE ON PROCEDURE centile.close_due() TO centile_operator;
