-- Call it outside a transaction block, because it commits after every step. The first COMMIT raises
-- 2D000 inside one, before a lock is taken.
CREATE OR REPLACE PROCEDURE centile.apply(p_board text)
LANGUAGE plpgsql
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board);
    v_until bigint[];
BEGIN
    COMMIT;
    v_until := centile_store.logged_batches(v_board.id);
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_board.id, p_until => v_until) a) LOOP
        COMMIT;
    END LOOP;
END
$$;

COMMENT ON PROCEDURE centile.apply(text) IS
'Applies all logged batches of a board, so that ranks by SQL are current. Example: CALL centile.apply(''main'');';
