-- Puts a ranking that was built into the place of its period's: takes in what the ledger has gained after an id, and lets the old
-- one go, all under the exclusive structure lock. False, and nothing done, when more than p_limit rows have come meanwhile: catch up
-- first. The layout's number goes on from the old one's, so that no version means two states.
CREATE FUNCTION centile_store.swap_ranking(p_ranking_id bigint, p_after bigint, p_limit integer DEFAULT 500) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_period centile_store.periods;
    v_end    bigint;
BEGIN
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    SELECT p.* INTO v_period FROM centile_store.rankings g JOIN centile_store.periods p ON p.id = g.period_id
    WHERE g.id = p_ranking_id AND g.released_at IS NULL;
    -- One that is newer than this has been loaded meanwhile.
    IF NOT FOUND OR v_period.ranking_id IS NULL OR v_period.ranking_id > p_ranking_id THEN
        RAISE EXCEPTION 'the period was closed, or is rebuilt by somebody else by now' USING ERRCODE = 'CB409';
    END IF;
    v_end := centile_store.ledger_end();
    IF (SELECT count(*) FROM (SELECT FROM centile_store.score_transactions t
                              WHERE t.board_id = v_period.board_id AND t.id > p_after AND t.id <= v_end LIMIT p_limit + 1) x) > p_limit THEN
        RETURN false;
    END IF;
    PERFORM centile_store.catch_up(p_ranking_id, p_after, v_end, 0, p_limit);
    UPDATE centile_store.rankings g SET layout = o.layout + 1
    FROM centile_store.rankings o WHERE g.id = p_ranking_id AND o.id = v_period.ranking_id;
    UPDATE centile_store.periods SET ranking_id = p_ranking_id WHERE id = v_period.id;
    UPDATE centile_store.rankings SET released_at = clock_timestamp() WHERE id = v_period.ranking_id;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.swap_ranking(bigint, bigint, integer) IS
'Makes a ranking that was built its period''s current one. Example: SELECT r.ranking_id IS NOT NULL AS is_begun, centile_store.fill_entries(r.ranking_id, r.batches), centile_store.fill_buckets(r.ranking_id), centile_store.swap_ranking(r.ranking_id, r.ledger_end) FROM centile_store.begin_rebuild(1) r;';
