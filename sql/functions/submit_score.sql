-- One score from psql, exactly as from the service; for the odd correction and for trying things out.
CREATE FUNCTION centile.submit_score(p_board text, p_user text, p_points bigint, p_reason text DEFAULT NULL, p_id text DEFAULT NULL,
    p_tiebreak smallint DEFAULT NULL)
RETURNS TABLE (outcome text, detail text, repeated boolean, result jsonb)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board centile_store.boards := centile_store.board_named(p_board);
BEGIN
    PERFORM centile.ensure_ledger_months(now(), now());
    PERFORM centile.ensure_users(ARRAY[p_user]);
    RETURN QUERY
    SELECT r.outcome, r.detail, r.repeated, r.result::jsonb
    FROM centile_store.record_scores(v_board.id, (centile.lane_hash(p_user) % v_board.lanes)::smallint,
        ARRAY[p_user], ARRAY[p_points], ARRAY[p_reason], ARRAY[p_id], ARRAY[p_tiebreak]) r;
END
$$;

COMMENT ON FUNCTION centile.submit_score(text, text, bigint, text, text, smallint) IS
'Writes one score and says what became of it; one call per transaction, or two sessions may deadlock. Example: SELECT outcome, result -> ''periods'' -> ''all_time'' -> ''score'' AS score FROM centile.submit_score(''main'', ''ann'', 10, ''first win'');';
