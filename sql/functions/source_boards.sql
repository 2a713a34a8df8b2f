-- The board, its sources, their sources and so on.
CREATE OR REPLACE FUNCTION centile_store.source_boards(p_board_id integer) RETURNS SETOF integer
LANGUAGE sql STABLE
AS $$
    WITH RECURSIVE reached (id) AS (
        SELECT p_board_id
        UNION
        SELECT s.source_board_id FROM reached r JOIN centile_store.combination_sources s ON s.board_id = r.id)
    SELECT id FROM reached
$$;

COMMENT ON FUNCTION centile_store.source_boards(integer) IS
'A board and all boards from which it is computed, directly or not. Example: SELECT centile_store.source_boards(4);';
