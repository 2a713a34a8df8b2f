CREATE OR REPLACE FUNCTION centile_store.quarantined(p_board centile_store.boards, p_quarantine_id bigint) RETURNS centile_store.quarantine
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_event centile_store.quarantine;
BEGIN
    SELECT * INTO v_event FROM centile_store.quarantine WHERE id = p_quarantine_id AND board_id = p_board.id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no event % in the quarantine of board %', quote_literal(p_quarantine_id), p_board.slug
            USING ERRCODE = 'CB404', DETAIL = 'quarantined';
    END IF;
    RETURN v_event;
END
$$;

COMMENT ON FUNCTION centile_store.quarantined(centile_store.boards, bigint) IS
'An event of a board''s quarantine; an error if it does not exist. Example: SELECT (centile_store.quarantined(b, q.quarantine_id)).rule FROM centile_store.boards b JOIN centile.quarantine q ON q.board = b.slug;';
