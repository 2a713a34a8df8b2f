-- Lanes, log and periods of a board have the owner's id; players and ledger have the board's.
CREATE OR REPLACE FUNCTION centile_store.owner_of(p_board_id integer) RETURNS integer
LANGUAGE sql STABLE
AS $$
    SELECT coalesce((SELECT t.template_id FROM centile_store.template_boards t WHERE t.id = p_board_id), p_board_id)
$$;

COMMENT ON FUNCTION centile_store.owner_of(integer) IS
'The template of a board, or the board itself. Example: SELECT centile_store.owner_of(1);';
