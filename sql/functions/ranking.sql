-- All rows of any period: the live standings while it is open, its archive once it is closed. The archive's name stands in
-- the period's row and is no caller's, and its rights are the owner's, hence SECURITY DEFINER. The ranking's own rows come by
-- the ways that page reads them; for a few of them call that.
CREATE OR REPLACE FUNCTION centile.ranking(p_board text, p_period text DEFAULT 'all_time')
RETURNS TABLE ("position" bigint, rank bigint, user_id text, user_name text, score bigint, reached_at timestamptz)
LANGUAGE plpgsql STABLE ROWS 100000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_board   centile_store.boards := centile_store.board_named(p_board);
    v_meant   record;
    v_archive centile_store.periods;
BEGIN
    SELECT * INTO v_meant FROM centile.resolve_period(v_board.id, p_period);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'board % has no period %', p_board, quote_literal(p_period)
            USING ERRCODE = 'CB404', DETAIL = 'period', HINT = format('It keeps: %s; seasons are named, as in season:spring, weeks by their Monday.', array_to_string(v_board.periods, ', '));
    ELSIF v_meant.ranking_id IS NOT NULL THEN
        RETURN QUERY
        SELECT r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at
        FROM centile_store.page_rows(v_meant.ranking_id, 1, centile_store.player_count(v_meant.ranking_id)::integer) r;
    ELSIF v_meant.archive_revision IS NOT NULL THEN
        SELECT * INTO STRICT v_archive FROM centile_store.periods p WHERE p.id = v_meant.period_id;
        RETURN QUERY
        SELECT r.position, r.rank, r.user_id, r.user_name, r.score, r.reached_at
        FROM centile_store.archive_rows(v_archive.archive_name, v_board.score_order, 1, v_archive.archive_players::integer) r;
    ELSIF v_meant.state = 'closed' THEN
        RAISE EXCEPTION 'board % has no archive of % any more', p_board, quote_literal(p_period)
            USING ERRCODE = 'CB404', DETAIL = 'period', HINT = 'The board keeps archives for a limited time only; the ledger is kept.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile.ranking(text, text) IS
'All players of a period, open or closed, best first. Example: SELECT * FROM centile.ranking(''main'', ''week:2024-01-15'');';
GRANT EXECUTE ON FUNCTION centile.ranking(text, text) TO centile_reader;
