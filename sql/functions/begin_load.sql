-- Announces an import that fills a board as a whole, like any import, and marks the board: until it has ended or its session is dead,
-- nothing else is written there. Only for a board without events: what has to be told from what was there before is the ordinary
-- import's business.
CREATE FUNCTION centile_store.begin_load(p_board_id integer, p_source text, p_actor text DEFAULT session_user) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_slug      text;
    v_import_id bigint;
BEGIN
    PERFORM centile_store.lock_structure(p_board_id, true);
    PERFORM centile_store.release_dead_loads();
    SELECT b.slug INTO STRICT v_slug FROM centile_store.boards b WHERE b.id = p_board_id;
    IF EXISTS (SELECT FROM centile_store.board_lanes l WHERE l.board_id = p_board_id AND l.batch > 0)
       OR EXISTS (SELECT FROM centile_store.score_transactions t WHERE t.board_id = p_board_id) THEN
        RAISE EXCEPTION 'board % has events already, and --fast is for the first ones', v_slug
            USING ERRCODE = 'CB409', HINT = 'Import without it, or into another board.';
    ELSIF EXISTS (SELECT FROM centile_store.imports i
                  WHERE i.board_id = p_board_id AND i.ended_at IS NULL AND i.abandoned_at IS NULL AND centile_store.import_is_running(i.id)) THEN
        RAISE EXCEPTION 'an import into board % is running', v_slug USING ERRCODE = 'CB409', HINT = 'Wait until it has ended.';
    END IF;
    v_import_id := centile_store.begin_import(p_board_id, p_source, p_actor);
    UPDATE centile_store.boards SET loading_import_id = v_import_id WHERE id = p_board_id;
    RETURN v_import_id;
END
$$;

COMMENT ON FUNCTION centile_store.begin_load(integer, text, text) IS
'Announces an import that fills a board as a whole and returns its number. Example: SELECT centile_store.begin_load(centile.create_board(''fresh''), ''scores.csv'') IS NOT NULL AS is_announced;';
