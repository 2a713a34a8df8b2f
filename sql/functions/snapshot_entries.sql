-- Takes the entries of most players from the ranking of all time. Computes only those of players
-- with ledger rows after the snapshot's end or cut-off from the ledger. So the cost does not grow
-- with the age of the board.
CREATE OR REPLACE FUNCTION centile_store.snapshot_entries(p_period_id bigint)
RETURNS TABLE (user_id bigint, score bigint, rank_key bigint, tie_key bigint, reached_at timestamptz, only_zeros boolean)
LANGUAGE plpgsql STABLE ROWS 1000000
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off
AS $$
DECLARE
    v_period  centile_store.periods;
    v_cut_off centile_store.cut_offs;
    v_ranking bigint;
    v_before  bigint;
    v_users   bigint[];
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods p WHERE p.id = p_period_id;
    SELECT * INTO STRICT v_cut_off FROM centile_store.cut_offs c WHERE c.period_id = p_period_id;
    SELECT p.ranking_id INTO v_ranking FROM centile_store.periods p WHERE p.board_id = v_period.board_id AND p.kind = 'all_time' AND p.segment = '';
    -- Reads the whole ledger if the ranking is known to be damaged. On a cluster, whose servers
    -- share no snapshot, it always does.
    IF v_cut_off.ledger_end IS NOT NULL AND v_ranking IS NOT NULL AND to_regclass('centile_lanes.groups') IS NULL
       AND NOT EXISTS (SELECT FROM centile_store.verified_rankings v WHERE v.ranking_id = v_ranking AND v.damaged_at IS NOT NULL) THEN
        -- If the last event before a cut-off is from before the snapshot's end, all earlier rows
        -- are.
        SELECT coalesce(max(c.ledger_end), 0) INTO v_before
        FROM centile_store.cut_offs c JOIN centile_store.periods p ON p.id = c.period_id
        WHERE p.board_id = v_period.board_id AND c.last_at < v_period.ends_at;
        -- The index by player would read all of the board; "+ 0" leaves the one by id.
        v_users := ARRAY(SELECT t.user_id FROM centile_store.score_transactions t
                         WHERE t.board_id + 0 = v_period.board_id AND t.occurred_at >= v_period.ends_at AND t.id > v_before
                         UNION
                         SELECT t.user_id FROM centile_store.score_transactions t
                         WHERE t.board_id + 0 = v_period.board_id AND t.id > v_cut_off.ledger_end);
    END IF;
    RETURN QUERY SELECT * FROM centile_store.updated_entries(v_ranking, p_period_id, v_cut_off.batches, v_users);
END
$$;

COMMENT ON FUNCTION centile_store.snapshot_entries(bigint) IS
'Entries of a snapshot as of its cut-off. Example: SELECT count(*) FROM centile_store.cut_offs c CROSS JOIN LATERAL centile_store.snapshot_entries(c.period_id);';
