-- centile_store.refresh_archive for a period of a template: the boards with a correction. The caller has
-- locked the cut-off.
CREATE OR REPLACE FUNCTION centile_store.refresh_boards(p_period centile_store.periods, p_actor text, p_reason text) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_boards  integer[];
    v_batches bigint[];
    v_after   centile_store.periods;
BEGIN
    -- In one snapshot: the results include the corrections of these rows, and of no others.
    WITH corrected AS (
        DELETE FROM centile_store.corrected_boards c WHERE c.period_id = p_period.id RETURNING c.board_id
    ), cut AS (
        UPDATE centile_store.cut_offs c
        SET batches = (SELECT centile_store.lane_batches(b.id, b.lanes) FROM centile_store.boards b WHERE b.id = p_period.board_id)
        WHERE c.period_id = p_period.id RETURNING c.batches)
    SELECT coalesce((SELECT array_agg(DISTINCT c.board_id ORDER BY c.board_id) FROM corrected c), '{}'), (SELECT c.batches FROM cut c) INTO v_boards, v_batches;
    PERFORM centile_store.write_results(p_period, v_boards, v_batches);
    PERFORM centile_store.sum_closed_boards(p_period);
    UPDATE centile_store.periods p
    SET archive_revision = p.archive_revision + 1, cut_off_at = clock_timestamp(),
        -- Keeps the mark of a later correction.
        corrected_at = CASE WHEN p.corrected_at IS DISTINCT FROM p_period.corrected_at THEN p.corrected_at END
    WHERE p.id = p_period.id RETURNING * INTO v_after;
    PERFORM centile_store.note_act(coalesce(p_actor, session_user), 'refresh', v_after.board_id,
        jsonb_build_object('revision', p_period.archive_revision, 'players', p_period.archive_players),
        jsonb_strip_nulls(jsonb_build_object('revision', v_after.archive_revision, 'players', v_after.archive_players, 'reason', p_reason)),
        centile_store.period_name(v_after.kind, v_after.label, v_after.segment));
    RETURN v_after.archive_revision;
END
$$;

COMMENT ON FUNCTION centile_store.refresh_boards(centile_store.periods, text, text) IS
'Writes again the results of a template''s boards that have a correction. Example: SELECT centile_store.refresh_boards(p, ''dora'', ''a correction'') FROM centile_store.periods p WHERE p.id = 0;';
