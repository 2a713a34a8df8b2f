-- The first step of closing: from now on nothing enters the period, and the archive will hold
-- everything before. The next steps recognize the cut-off by its time. NULL if an import keeps the
-- whole period open. After a crash it takes a new cut-off: no score has entered since, but a
-- ban or a void may have.
--
-- The segments of a whole period are cut off together with it, and closed after it, as of the same
-- cut-off. Their archives lack corrections since then, so a segment keeps its mark of a correction,
-- or takes over that of the whole period.
CREATE OR REPLACE FUNCTION centile_store.cut_off_period(p_period_id bigint) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_period centile_store.periods;
    v_whole  centile_store.periods;
    v_last_at timestamptz;
    v_end    bigint;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    PERFORM centile_store.lock_structure(v_period.board_id, true);
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' THEN
        RAISE EXCEPTION 'the period is already closed' USING ERRCODE = 'CB409';
    ELSIF v_period.ends_at > clock_timestamp() THEN
        RAISE EXCEPTION 'the period is not over: it ends at %', v_period.ends_at USING ERRCODE = 'CB409';
    END IF;
    PERFORM centile_store.check_league(v_period);
    SELECT * INTO STRICT v_whole FROM centile_store.periods w
    WHERE w.board_id = v_period.board_id AND w.kind = v_period.kind AND w.label = v_period.label AND w.segment = '';
    IF v_whole.id <> p_period_id AND v_whole.state <> 'closed' THEN
        RAISE EXCEPTION 'the whole period must be closed before its segments' USING ERRCODE = 'CB409';
    ELSIF v_whole.id = p_period_id AND EXISTS (SELECT FROM centile_store.imports i
              WHERE i.board_id = v_period.board_id AND i.ended_at IS NULL AND i.abandoned_at IS NULL) THEN
        RETURN NULL;
    END IF;

    -- An earlier cut-off may have raised the lanes.
    SELECT coalesce(centile.last_event_at(v_period.board_id, max(l.last_at)), max(l.last_at)) INTO v_last_at
    FROM centile_store.board_lanes l WHERE l.board_id = v_period.board_id;
    v_end := centile_store.ledger_end();
    UPDATE centile_store.board_lanes AS l SET last_at = v_period.ends_at
    WHERE l.board_id = v_period.board_id AND l.last_at < v_period.ends_at;
    INSERT INTO centile_store.cut_offs AS c (period_id, batches, ledger_end, last_at)
    SELECT p.id, CASE v_whole.id WHEN p_period_id THEN b.batches ELSE (SELECT o.batches FROM centile_store.cut_offs o WHERE o.period_id = v_whole.id) END, v_end, v_last_at
    FROM centile_store.periods p
    CROSS JOIN (SELECT centile_store.lane_batches(x.id, x.lanes) AS batches FROM centile_store.boards x WHERE x.id = v_period.board_id) b
    WHERE p.id = p_period_id OR (p.board_id = v_whole.board_id AND p.kind = v_whole.kind AND p.label = v_whole.label AND p.state = 'open' AND v_whole.id = p_period_id)
    ON CONFLICT ON CONSTRAINT cut_offs_pkey DO UPDATE SET batches = excluded.batches, ledger_end = excluded.ledger_end, last_at = excluded.last_at, last_board = 0;
    IF EXISTS (SELECT FROM centile_store.cut_offs c WHERE c.period_id = p_period_id AND array_position(c.batches, NULL) IS NOT NULL) THEN
        RAISE EXCEPTION 'a lane of the board has no row' USING ERRCODE = 'CB900', HINT = 'Run centile verify: it names the lane. Then run centile rebuild.';
    END IF;
    UPDATE centile_store.periods p
    -- The comparison sets archive_players.
    SET cut_off_at = clock_timestamp(), archive_players = NULL,
        corrected_at = CASE WHEN v_whole.id <> p_period_id THEN coalesce(p.corrected_at, v_whole.corrected_at) END,
        -- Keeps the name of an earlier attempt, whose view the next step replaces.
        archive_name = coalesce(p.archive_name, centile_store.archive_name(p.id))
    WHERE p.id = p_period_id OR (p.board_id = v_whole.board_id AND p.kind = v_whole.kind AND p.label = v_whole.label AND p.state = 'open' AND v_whole.id = p_period_id);
    RETURN (SELECT p.cut_off_at FROM centile_store.periods p WHERE p.id = p_period_id);
END
$$;

COMMENT ON FUNCTION centile_store.cut_off_period(bigint) IS
'Begins to close a period that is over, and returns the time of the cut-off. Example: SELECT centile_store.cut_off_period(2) IS NOT NULL AS is_cut_off;';
