-- For the functions that users call. Without p_period, the default period of the board. Both results are NULL while the period has no scores.
CREATE OR REPLACE FUNCTION centile_store.source_named(p_board text, p_period text, OUT ranking_id bigint, OUT archived_period_id bigint)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_board  centile_store.boards := centile_store.board_named(p_board);
    v_period record;
BEGIN
    p_period := coalesce(p_period, v_board.default_period);
    SELECT * INTO v_period FROM centile.resolve_period(v_board.id, p_period);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'board % has no period %', p_board, quote_literal(p_period)
            USING ERRCODE = 'CB404', DETAIL = 'period',
                HINT = format('The board has: %s. Name a season as in season:spring, a snapshot as in snapshot:week-2024-01-15, a window as in rolling:7d, a segment as in week@country:DE, and a week by its Monday.', array_to_string(v_board.periods, ', '));
    ELSIF v_period.state = 'closed' AND v_period.archive_revision IS NULL THEN
        RAISE EXCEPTION 'the archive of % of board % was dropped', quote_literal(p_period), p_board
            USING ERRCODE = 'CB404', DETAIL = 'period', HINT = 'The board keeps archives for a limited time. The ledger keeps all scores.';
    ELSIF v_period.state = 'preparing' THEN
        RAISE EXCEPTION '% of board % is being prepared', quote_literal(p_period), p_board
            USING ERRCODE = 'CB001', DETAIL = 'period_preparing', HINT = 'Retry. centile serve or centile close --due fills it from the ledger.';
    END IF;
    ranking_id := v_period.ranking_id;
    archived_period_id := CASE WHEN v_period.state = 'closed' THEN v_period.period_id END;
END
$$;

COMMENT ON FUNCTION centile_store.source_named(text, text) IS
'The current ranking of a period, or the period itself when its archive answers for it. Example: SELECT * FROM centile_store.source_named(''main'', ''all_time'');';
