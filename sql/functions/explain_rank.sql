-- Runs each statement of rank_steps once, all in one snapshot. The times include planning.
CREATE OR REPLACE FUNCTION centile.explain_rank(p_board text, p_user text, p_period text DEFAULT NULL)
RETURNS TABLE (step integer, what text, value text, time_ms numeric, statement text)
LANGUAGE plpgsql STABLE ROWS 14 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_user_id bigint := centile_store.user_named(p_user);
    v_source  record;
    v_begin   timestamptz;
    v_total   numeric := 0;
BEGIN
    SELECT * INTO v_source FROM centile_store.source_named(p_board, p_period);
    IF (SELECT k.rank_key FROM centile_store.applied_key(v_source.ranking_id, v_user_id) k) IS NULL
            AND NOT EXISTS (SELECT FROM centile_store.archive_players(v_source.archived_period_id, ARRAY[v_user_id])) THEN
        RAISE EXCEPTION 'no entry of player %', quote_literal(p_user)
            USING ERRCODE = 'CB404', DETAIL = 'entry', HINT = format('The player has no score in %s of board %s.', coalesce(p_period, 'its default period'), p_board);
    END IF;
    FOR step, what, statement IN
        SELECT s.* FROM centile_store.rank_steps(v_source.ranking_id, v_source.archived_period_id, v_user_id) WITH ORDINALITY AS r (what, statement, n)
        CROSS JOIN LATERAL (SELECT r.n::integer, r.what, r.statement) s
    LOOP
        v_begin := clock_timestamp();
        EXECUTE statement INTO value;
        time_ms := round(1000 * extract(epoch FROM clock_timestamp() - v_begin), 3);
        v_total := v_total + time_ms;
        RETURN NEXT;
    END LOOP;
    RETURN QUERY SELECT step + 1, 'all of these', NULL::text, v_total, NULL::text;
END
$$;

COMMENT ON FUNCTION centile.explain_rank(text, text, text) IS
'The steps that compute a player''s rank, each with its value, its duration and its statement, which centile_reader may run. p_period defaults to the default period of the board. Example: SELECT step, what, value FROM centile.explain_rank(''main'', ''ann'', ''week:2024-01-15'') WHERE what <> ''version'';';
GRANT EXECUTE ON FUNCTION centile.explain_rank(text, text, text) TO centile_reader;
