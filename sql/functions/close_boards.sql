-- A step of closing a period of a template: the results of its next p_limit boards, from the ledger as
-- of the cut-off. Returns the number of boards; 0 after the last. Repeats what an earlier cut-off left
-- behind.
CREATE OR REPLACE FUNCTION centile_store.close_boards(p_period_id bigint, p_limit integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_period  centile_store.periods;
    v_cut_off centile_store.cut_offs;
    v_boards  integer[];
BEGIN
    SELECT * INTO STRICT v_cut_off FROM centile_store.cut_offs c WHERE c.period_id = p_period_id FOR UPDATE;
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' OR v_period.cut_off_at IS NULL THEN
        RAISE EXCEPTION 'the period is closed or not cut off' USING ERRCODE = 'CB409';
    END IF;
    -- Rankings are released after the period is closed.
    v_boards := ARRAY(SELECT g.players_of FROM centile_store.rankings g JOIN centile_store.template_boards t ON t.id = g.players_of
                      WHERE g.players_of > v_cut_off.last_board AND g.period_id = p_period_id AND g.players_of <> g.board_id AND g.released_at IS NULL
                      ORDER BY g.players_of LIMIT p_limit);
    PERFORM centile_store.write_results(v_period, v_boards, v_cut_off.batches);
    UPDATE centile_store.cut_offs c SET last_board = v_boards[cardinality(v_boards)] WHERE c.period_id = p_period_id AND v_boards <> '{}';
    RETURN cardinality(v_boards);
END
$$;

COMMENT ON FUNCTION centile_store.close_boards(bigint, integer) IS
'Writes the results of some boards of a template in a period that is cut off, and returns their number. Example: SELECT centile_store.close_boards(p.period_id) FROM centile.periods p WHERE p.board = ''quest-*'' AND p.state = ''closing'';';
