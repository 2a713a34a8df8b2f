-- Takes a new cut-off, computes the archive from the ledger while readers continue, freezes the top
-- again and raises the revision, in one transaction. A segment takes the cut-off of its whole
-- period, which may be before a correction: the segment then stays marked as long as its whole
-- period does. Marks the segments that must follow, so that an interrupted call leaves none out.
CREATE OR REPLACE FUNCTION centile_store.refresh_archive(p_period_id bigint, p_actor text, p_reason text) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET work_mem = '128MB'
SET maintenance_work_mem = '128MB'
AS $$
DECLARE
    v_before  centile_store.periods;
    v_after   centile_store.periods;
    v_was     bigint[]; v_is bigint[];
    v_marked  timestamptz;
    v_keeps   boolean;
    v_players bigint; v_last_at timestamptz;
    v_outdated bigint[];
BEGIN
    -- One refresh at a time. Locks the period's row only at the end, so that no correction waits.
    PERFORM FROM centile_store.cut_offs WHERE period_id = p_period_id FOR UPDATE;
    SELECT * INTO STRICT v_before FROM centile_store.periods WHERE id = p_period_id;
    PERFORM centile_store.check_written(b) FROM centile_store.boards b WHERE b.id = v_before.board_id;
    IF v_before.frozen_top IS NULL THEN
        RAISE EXCEPTION 'the period has no archive: it is %', CASE v_before.state WHEN 'closed' THEN 'closed, and the archive was dropped' ELSE 'not closed' END
            USING ERRCODE = 'CB409';
    ELSIF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_before.board_id) THEN
        RETURN centile_store.refresh_boards(v_before, p_actor, p_reason);
    END IF;
    -- One snapshot: all batches up to these numbers are committed, and so are the corrections
    -- marked by now.
    UPDATE centile_store.cut_offs c
    SET batches = coalesce(was.of_whole, (SELECT centile_store.lane_batches(b.id, b.lanes) FROM centile_store.boards b WHERE b.id = v_before.board_id))
    FROM (SELECT o.batches, p.corrected_at, wo.batches AS of_whole, w.corrected_at IS NOT NULL AS keeps
          FROM centile_store.cut_offs o JOIN centile_store.periods p ON p.id = o.period_id
          LEFT JOIN centile_store.periods w ON p.segment <> '' AND w.board_id = p.board_id AND w.kind = p.kind AND w.label = p.label AND w.segment = ''
          LEFT JOIN centile_store.cut_offs wo ON wo.period_id = w.id
          WHERE o.period_id = p_period_id) was
    WHERE c.period_id = p_period_id
    RETURNING was.batches, c.batches, was.corrected_at, was.keeps INTO v_was, v_is, v_marked, v_keeps;
    IF array_position(v_is, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a lane of the board has no row' USING ERRCODE = 'CB900', HINT = 'Run centile verify: it names the lane. Then run centile rebuild.';
    END IF;
    IF centile_store.archive_kind(p_period_id, v_before.archive_name) = 'r' THEN
        EXECUTE format('DELETE FROM centile_archive.%I', v_before.archive_name);
        EXECUTE format('INSERT INTO centile_archive.%I %s', v_before.archive_name, centile_store.archive_query(p_period_id));
    ELSE
        -- CONCURRENTLY needs a populated view, which REFRESH … WITH NO DATA has emptied.
        EXECUTE (SELECT format('REFRESH MATERIALIZED VIEW %s %s', CASE WHEN c.relispopulated THEN 'CONCURRENTLY' END, c.oid::regclass)
                 FROM pg_catalog.pg_class c WHERE c.oid = format('centile_archive.%I', v_before.archive_name)::regclass);
        PERFORM centile_store.comment_archive(p_period_id, v_before.archive_name, 'MATERIALIZED VIEW');
    END IF;
    EXECUTE format('SELECT count(*), max(reached_at) FROM centile_archive.%I', v_before.archive_name) INTO v_players, v_last_at;
    v_outdated := ARRAY(SELECT s FROM centile_store.outdated_segments(p_period_id) AS s);
    -- Prevents name changes; otherwise the top could show an erased name again. Before the period's
    -- row, which centile.erase_user locks after this one.
    PERFORM FROM centile_store.profile_revision FOR SHARE;
    -- Before the period's row, as an erasure does.
    INSERT INTO centile_store.named_players AS n (period_id, user_ids) VALUES (p_period_id, '{}')
    ON CONFLICT ON CONSTRAINT named_players_pkey DO UPDATE SET user_ids = n.user_ids;
    -- Two updates, because the top contains the number of players.
    UPDATE centile_store.periods
    SET archive_players = v_players, archive_last_at = v_last_at, archive_revision = archive_revision + 1, cut_off_at = clock_timestamp(),
        -- Keeps the mark of a correction after the cut-off.
        corrected_at = CASE WHEN v_keeps OR corrected_at IS DISTINCT FROM v_marked THEN corrected_at END
    WHERE id = p_period_id;
    UPDATE centile_store.periods SET frozen_top = centile_store.freeze_top(p_period_id) WHERE id = p_period_id RETURNING * INTO v_after;
    PERFORM centile_store.mark_corrected(v_outdated);
    PERFORM centile_store.rank_cohorts(p_period_id);
    PERFORM centile_store.list_named_players(p_period_id);
    PERFORM centile_store.note_act(coalesce(p_actor, session_user), 'refresh', v_after.board_id,
        jsonb_build_object('revision', v_before.archive_revision, 'players', v_before.archive_players, 'batches', v_was),
        jsonb_strip_nulls(jsonb_build_object('revision', v_after.archive_revision, 'players', v_after.archive_players, 'batches', v_is, 'reason', p_reason)),
        centile_store.period_name(v_after.kind, v_after.label, v_after.segment));
    RETURN v_after.archive_revision;
END
$$;

COMMENT ON FUNCTION centile_store.refresh_archive(bigint, text, text) IS
'Updates the archive of a closed period from the ledger and returns its revision. Example: SELECT c.at IS NOT NULL AS is_cut_off, centile_store.build_archive(2), centile_store.compare_archive(2), centile_store.finish_close(2, c.at), centile_store.refresh_archive(2, ''dora'', ''a correction'') FROM (SELECT centile_store.cut_off_period(2) AS at) c;';
