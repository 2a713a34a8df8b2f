-- Takes the mark off boards whose load was cut short, and gives its import up: it has left nothing that could be gone on with. Returns how many.
CREATE FUNCTION centile_store.release_dead_loads() RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_import_id bigint;
    v_released  integer := 0;
BEGIN
    FOR v_import_id IN
        UPDATE centile_store.boards b SET loading_import_id = NULL
        FROM (SELECT d.id, d.loading_import_id FROM centile_store.boards d
              WHERE d.loading_import_id IS NOT NULL AND NOT centile_store.import_is_running(d.loading_import_id)
              -- A row that is locked is in the hands of another import or load.
              ORDER BY d.id FOR UPDATE SKIP LOCKED) d
        WHERE b.id = d.id
        RETURNING d.loading_import_id
    LOOP
        PERFORM centile_store.end_load(v_import_id, false);
        v_released := v_released + 1;
    END LOOP;
    RETURN v_released;
END
$$;

COMMENT ON FUNCTION centile_store.release_dead_loads() IS
'Takes the mark off boards whose load was cut short. Example: SELECT centile_store.release_dead_loads();';
