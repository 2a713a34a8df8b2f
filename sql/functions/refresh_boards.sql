-- centile_store.refresh_archive for a period of a template: the boards with a correction. The caller has
-- locked the cut-off. Takes the boards before the batches: these then include their corrections.
CREATE OR REPLACE FUNCTION centile_store.refresh_boards(p_period centile_store.periods) RETURNS centile_store.periods
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_boards  integer[];
    v_batches bigint[];
    v_after   centile_store.periods;
BEGIN
    WITH corrected AS (DELETE FROM centile_store.corrected_boards c WHERE c.period_id = p_period.id RETURNING c.board_id)
    SELECT coalesce(array_agg(c.board_id ORDER BY c.board_id), '{}') INTO v_boards FROM corrected c;
    UPDATE centile_store.cut_offs c
    SET batches = (SELECT centile_store.lane_batches(b.id, b.lanes) FROM centile_store.boards b WHERE b.id = p_period.board_id)
    WHERE c.period_id = p_period.id RETURNING c.batches INTO v_batches;
    PERFORM centile_store.write_results(p_period, v_boards, v_batches);
    PERFORM centile_store.sum_closed_boards(p_period);
    UPDATE centile_store.periods p
    SET archive_revision = p.archive_revision + 1, cut_off_at = clock_timestamp(),
        -- Keeps the mark of a later correction.
        corrected_at = CASE WHEN p.corrected_at IS DISTINCT FROM p_period.corrected_at THEN p.corrected_at END
    WHERE p.id = p_period.id RETURNING * INTO v_after;
    RETURN v_after;
END
$$;

COMMENT ON FUNCTION centile_store.refresh_boards(centile_store.periods) IS
'Writes again the results of a template''s boards that have a correction. Example: SELECT (centile_store.refresh_boards(p)).archive_revision FROM centile_store.periods p WHERE p.id = 0;';
