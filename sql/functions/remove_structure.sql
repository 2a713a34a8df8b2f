-- The last step of removing a deleted board, which has neither events nor rankings any more.
CREATE OR REPLACE FUNCTION centile_store.remove_structure(p_board_id integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_periods bigint[] := ARRAY(SELECT p.id FROM centile_store.periods p WHERE p.board_id = p_board_id);
BEGIN
    DELETE FROM centile_store.archive_differences d WHERE d.period_id = ANY (v_periods);
    DELETE FROM centile_store.named_players n WHERE n.period_id = ANY (v_periods);
    DELETE FROM centile_store.cut_offs c WHERE c.period_id = ANY (v_periods);
    DELETE FROM centile_store.periods p WHERE p.board_id = p_board_id;
    DELETE FROM centile_store.imports i WHERE i.board_id = p_board_id;
    DELETE FROM centile_store.applied a WHERE a.board_id = p_board_id;
    DELETE FROM centile_store.board_lanes l WHERE l.board_id = p_board_id;
    DELETE FROM centile_store.boards b WHERE b.id = p_board_id AND b.deleted_at IS NOT NULL;
    DELETE FROM centile_store.deletions d WHERE d.board_id = p_board_id;
END
$$;

COMMENT ON FUNCTION centile_store.remove_structure(integer) IS
'Removes periods, lanes and row of a deleted board. Example: SELECT centile_store.remove_structure(0);';
