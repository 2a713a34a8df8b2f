-- Lets rankings go that were being built by a process that is no more; returns how many.
CREATE FUNCTION centile_store.release_abandoned() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_released bigint;
BEGIN
    UPDATE centile_store.rankings r SET released_at = clock_timestamp()
    WHERE r.released_at IS NULL
      AND NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = r.id)
      AND NOT centile_store.ranking_is_being_built(r.id);
    GET DIAGNOSTICS v_released = ROW_COUNT;
    RETURN v_released;
END
$$;

COMMENT ON FUNCTION centile_store.release_abandoned() IS
'Lets rankings go whose building was cut short. Example: SELECT centile_store.release_abandoned();';
