-- Every act on one player holds these locks.
CREATE OR REPLACE FUNCTION centile_store.lock_lane(p_board centile_store.boards, p_external_id text) RETURNS centile_store.board_lanes
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_lane  centile_store.board_lanes;
    v_owner integer := centile_store.owner_of(p_board.id);
BEGIN
    PERFORM centile_store.lock_structure(v_owner, false, (centile.lane_hash(p_external_id) % p_board.lanes)::smallint);
    -- The board may have been deleted meanwhile, and another have its name.
    IF (centile_store.board_named(p_board.slug, true)).id <> p_board.id THEN
        RAISE EXCEPTION 'board % was deleted', p_board.slug USING ERRCODE = 'CB404', DETAIL = 'board';
    END IF;
    -- Reads the number of lanes again, under the lock.
    SELECT l.* INTO STRICT v_lane
    FROM centile_store.boards b
    JOIN centile_store.board_lanes l ON l.board_id = b.id AND l.lane = centile.lane_hash(p_external_id) % b.lanes
    WHERE b.id = v_owner
    ORDER BY l.batch DESC LIMIT 1 FOR UPDATE OF l;
    RETURN v_lane;
END
$$;

COMMENT ON FUNCTION centile_store.lock_lane(centile_store.boards, text) IS
'Takes a board''s structure lock (shared) and a player''s lane for this transaction. Example: SELECT (centile_store.lock_lane(b, ''ann'')).batch FROM centile_store.boards b WHERE b.slug = ''main'';';
