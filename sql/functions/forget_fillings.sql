-- Not in a transaction in which workers of a cluster have changed these rows.
CREATE OR REPLACE FUNCTION centile_store.forget_fillings(p_board_id integer) RETURNS void
LANGUAGE sql VOLATILE
AS $$
    DELETE FROM centile_store.fillings f
    WHERE f.board_id = p_board_id AND NOT EXISTS (
        SELECT FROM centile_store.rankings g
        WHERE g.id = f.ranking_id AND g.released_at IS NULL AND NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = g.id))
$$;

COMMENT ON FUNCTION centile_store.forget_fillings(integer) IS
'Deletes the progress of rankings of a board that are no longer being built. Example: SELECT centile_store.forget_fillings(1);';
