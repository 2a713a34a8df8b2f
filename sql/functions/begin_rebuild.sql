-- The rebuild first reads the ledger up to ledger_end. The session holds a lock until it ends,
-- which shows that the rebuild is running. Releases rankings of earlier, interrupted rebuilds of
-- the period.
CREATE OR REPLACE FUNCTION centile_store.begin_rebuild(p_period_id bigint, OUT ranking_id bigint, OUT ledger_end bigint)
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_column
DECLARE
    v_period centile_store.periods;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    PERFORM centile_store.lock_structure(v_period.board_id, true);
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' THEN
        RAISE EXCEPTION 'the period is closed: it has an archive and no ranking' USING ERRCODE = 'CB409', HINT = 'Run centile refresh: it brings an archive up to the ledger.';
    ELSIF EXISTS (SELECT FROM centile_store.rankings r
                  WHERE r.period_id = p_period_id AND r.id IS DISTINCT FROM v_period.ranking_id AND r.released_at IS NULL
                    AND centile_store.is_locked(1128615510, r.id)) THEN
        RAISE EXCEPTION 'another session is rebuilding the period' USING ERRCODE = 'CB409';
    END IF;
    UPDATE centile_store.rankings r SET released_at = clock_timestamp()
    WHERE r.period_id = p_period_id AND r.id IS DISTINCT FROM v_period.ranking_id AND r.released_at IS NULL;
    INSERT INTO centile_store.rankings (board_id, period_id, lanes)
    SELECT b.id, p_period_id, b.lanes FROM centile_store.boards b WHERE b.id = v_period.board_id
    RETURNING id INTO ranking_id;
    -- Does not wait: any session may hold an advisory lock, and this one holds the structure lock.
    IF NOT pg_try_advisory_lock(1128615510, centile_store.lock_key(ranking_id)) THEN
        RAISE EXCEPTION 'another session holds the lock of ranking %', ranking_id USING ERRCODE = 'CB409', HINT = 'See pg_locks, classid 1128615510.';
    END IF;
    ledger_end := centile_store.ledger_end();
END
$$;

COMMENT ON FUNCTION centile_store.begin_rebuild(bigint) IS
'Begins a new ranking of a period, beside the live one if there is one, and returns it with the end of the ledger. Example: SELECT ranking_id IS NOT NULL AS is_begun FROM centile_store.begin_rebuild(1);';
