-- The current ranking of a board's period, for the functions that people call; an error that names what does not exist.
CREATE FUNCTION centile_store.ranking_named(p_board text, p_period text) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_board  centile_store.boards := centile_store.board_named(p_board);
    v_period record;
BEGIN
    SELECT * INTO v_period FROM centile.resolve_period(v_board.id, p_period);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'board % has no period %', p_board, quote_literal(p_period)
            USING ERRCODE = 'CB404', DETAIL = 'period', HINT = format('It keeps: %s.', array_to_string(v_board.periods, ', '));
    END IF;
    RETURN v_period.ranking_id;
END
$$;

COMMENT ON FUNCTION centile_store.ranking_named(text, text) IS
'The current ranking of a period, or NULL when it has none. Example: SELECT centile_store.ranking_named(''main'', ''all_time'');';
