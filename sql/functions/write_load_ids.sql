-- Keeps the ids that the events of a load came with, for ever, as an import does. Returns how many.
CREATE FUNCTION centile_store.write_load_ids(p_board_id integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET work_mem = '256MB'
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_ids bigint;
BEGIN
    INSERT INTO centile_store.transaction_ids (board_id, user_id, external_id, transaction_id, occurred_at)
    SELECT p_board_id, e.user_id, e.external_id, e.id, e.occurred_at
    FROM pg_temp.load_event e WHERE e.external_id IS NOT NULL ORDER BY e.user_id, e.external_id;
    GET DIAGNOSTICS v_ids = ROW_COUNT;
    RETURN v_ids;
END
$$;

COMMENT ON FUNCTION centile_store.write_load_ids(integer) IS
'Keeps the ids of the events of a load. Example: SELECT centile_store.make_load_tables(), centile_store.write_load_ids(1);';
