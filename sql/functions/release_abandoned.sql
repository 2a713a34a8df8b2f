-- Handles one board per call; call it until it returns 0.
CREATE OR REPLACE FUNCTION centile_store.release_abandoned() RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board_id integer;
    v_released bigint;
BEGIN
    SELECT r.board_id INTO v_board_id
    FROM centile_store.rankings r
    WHERE r.released_at IS NULL AND r.players_of = r.board_id
      AND NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = r.id)
      AND NOT centile_store.is_locked(1128615510, r.id)
    LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- Checks again under the lock that a swap takes: the ranking may be its period's by now.
    PERFORM centile_store.lock_structure(v_board_id, true);
    UPDATE centile_store.rankings r SET released_at = clock_timestamp()
    WHERE r.board_id = v_board_id AND r.released_at IS NULL AND r.players_of = r.board_id
      AND NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = r.id)
      AND NOT centile_store.is_locked(1128615510, r.id);
    GET DIAGNOSTICS v_released = ROW_COUNT;
    RETURN v_released;
END
$$;

COMMENT ON FUNCTION centile_store.release_abandoned() IS
'Releases rankings of interrupted rebuilds, and returns their number. Example: SELECT centile_store.release_abandoned();';
