-- On a cluster, sql/cluster/coordinator replaces this function: it leaves out workers that are down.
CREATE OR REPLACE FUNCTION centile_store.lock_for_opening(p_board_id integer) RETURNS centile_store.boards
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN centile_store.lock_structure(p_board_id, true);
END
$$;

COMMENT ON FUNCTION centile_store.lock_for_opening(integer) IS
'Takes a board''s structure lock exclusively to open periods or segments, and returns the board. Example: SELECT (centile_store.lock_for_opening(1)).slug;';
