-- On a cluster (sql/cluster), workers that are down get the new periods later.
CREATE OR REPLACE FUNCTION centile_store.lock_to_open(p_board_id integer) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN centile_store.lock_structure(p_board_id, true);
END
$$;

COMMENT ON FUNCTION centile_store.lock_to_open(integer) IS
'Takes a board''s structure lock exclusively for new periods or segments, and returns the board. Example: SELECT (centile_store.lock_to_open(1)).slug;';
