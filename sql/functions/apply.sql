-- Call it outside a transaction block, because it commits after every step. The first COMMIT raises
-- 2D000 inside one, before a lock is taken.
CREATE OR REPLACE PROCEDURE centile.apply(p_board text)
LANGUAGE plpgsql
AS $$
DECLARE
    v_step record;
BEGIN
    COMMIT;
    SELECT * INTO v_step FROM centile_store.apply_step(p_board, NULL);
    WHILE NOT v_step.is_done LOOP
        COMMIT;
        SELECT * INTO v_step FROM centile_store.apply_step(p_board, v_step.until);
    END LOOP;
END
$$;

COMMENT ON PROCEDURE centile.apply(text) IS
'Applies all logged batches of a board, so that ranks by SQL are current. Example: CALL centile.apply(''main'');';
GRANT EXECUTE ON PROCEDURE centile.apply(text) TO centile_operator;
