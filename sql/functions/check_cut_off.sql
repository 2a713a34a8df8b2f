-- A cut-off stores the batch of each lane's row. If a row was set back before, the archive would
-- lack later scores for ever. A segment has the cut-off of its whole period. Of a snapshot, reads
-- only rows since the last one; "+ 0" leaves the index by id. A refresh changes the batches of a
-- cut-off, but not its ledger_end.
CREATE OR REPLACE FUNCTION centile_store.check_cut_off(p_period centile_store.periods) RETURNS void
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_cut_off centile_store.cut_offs;
    v_last    centile_store.cut_offs;
BEGIN
    SELECT * INTO STRICT v_cut_off FROM centile_store.cut_offs c WHERE c.period_id = p_period.id;
    SELECT c.* INTO v_last FROM centile_store.cut_offs c JOIN centile_store.periods p ON p.id = c.period_id
    WHERE p_period.kind = 'snapshot' AND p.board_id = p_period.board_id AND p.kind = 'snapshot' AND p.state = 'closed'
      AND c.ledger_end IS NOT NULL
    ORDER BY c.ledger_end DESC LIMIT 1;
    IF (CASE p_period.kind WHEN 'snapshot' THEN EXISTS (
            SELECT FROM centile_store.score_transactions t
            WHERE t.board_id + 0 = p_period.board_id AND t.id > coalesce(v_last.ledger_end, 0) AND t.id <= v_cut_off.ledger_end
              AND t.batch > v_cut_off.batches[t.lane + 1])
        OR EXISTS (SELECT FROM unnest(v_last.batches, v_cut_off.batches) AS u (was, batch)
                   WHERE u.batch < u.was
                     AND (SELECT p.archive_revision FROM centile_store.periods p WHERE p.id = v_last.period_id) < 2)
        ELSE EXISTS (
            SELECT FROM centile_store.score_transactions t
            WHERE t.board_id = p_period.board_id AND t.occurred_at >= p_period.starts_at AND t.occurred_at < p_period.ends_at
              AND t.id <= v_cut_off.ledger_end AND t.batch > v_cut_off.batches[t.lane + 1]) END) THEN
        RAISE EXCEPTION 'the ledger has batches above the last one of their lane' USING ERRCODE = 'CB900', HINT = 'Run centile verify: it names the lane. Then run centile rebuild.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.check_cut_off(centile_store.periods) IS
'Raises an error if a cut-off leaves out earlier rows of the ledger. Example: SELECT centile_store.check_cut_off(p) FROM centile_store.periods p WHERE p.kind = ''week'' AND p.state = ''closed'';';
