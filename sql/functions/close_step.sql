-- The next step of closing a period, for operators: the cut-off, without p_cut_off_at; then the
-- archive and its comparison with the live ranking; then the end. The caller commits after each one,
-- and passes the returned cut_off_at until there is a result. Holds the closing lock until then,
-- unless another process does (is_busy). Does not call due_periods, which reads all open periods.
CREATE OR REPLACE FUNCTION centile_store.close_step(p_period_id bigint, p_cut_off_at timestamptz, OUT cut_off_at timestamptz, OUT is_busy boolean, OUT result text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_period centile_store.periods;
BEGIN
    -- A caller in a transaction block must not hold locks while it is idle.
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    is_busy := NOT pg_try_advisory_xact_lock(1128615508, -1);
    SELECT * INTO v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    IF is_busy THEN
        result := 'is left to another process that closes or refreshes periods';
    ELSIF v_period.state = 'closed' THEN
        result := 'was closed by another process';
    ELSIF v_period.state IS DISTINCT FROM 'open' THEN
        RAISE EXCEPTION 'there is no open period %', p_period_id USING ERRCODE = 'CB409';
    ELSIF v_period.kind = 'rolling' AND v_period.cut_off_at IS NULL
          AND NOT EXISTS (SELECT FROM centile_store.boards b WHERE b.id = v_period.board_id AND b.kept_archives ? 'rolling') THEN
        RAISE EXCEPTION 'the board archives no rolling windows' USING ERRCODE = 'CB409';
    ELSIF p_cut_off_at IS NULL THEN
        cut_off_at := centile_store.cut_off_period(p_period_id);
    ELSIF v_period.cut_off_at = p_cut_off_at AND v_period.archive_players IS NULL THEN
        PERFORM centile_store.compare_archive(p_period_id) WHERE centile_store.build_archive(p_period_id);
        cut_off_at := p_cut_off_at;
    ELSIF v_period.cut_off_at = p_cut_off_at THEN
        IF centile_store.finish_close(p_period_id, p_cut_off_at) THEN
            result := format('is closed: %s players, %s differences', v_period.archive_players, v_period.archive_differences);
            PERFORM centile_store.note_act(session_user, 'close', v_period.board_id, '{}',
                jsonb_build_object('players', v_period.archive_players, 'differences', v_period.archive_differences),
                centile_store.period_name(v_period.kind, v_period.label, v_period.segment));
        END IF;
    END IF;
    IF cut_off_at IS NULL AND result IS NULL THEN
        result := coalesce(
            (SELECT 'waits for the import of ' || d.import_source FROM centile_store.due_periods(p_period_id) d WHERE d.period_id = p_period_id),
            'has changed while it was being closed: call again');
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.close_step(bigint, timestamptz) IS
'Runs the next step of closing a period. Example: SELECT s.cut_off_at IS NOT NULL AS is_cut_off, s.result FROM centile_store.close_step(2, NULL) s;';
GRANT EXECUTE ON FUNCTION centile_store.close_step(bigint, timestamptz) TO centile_operator;
