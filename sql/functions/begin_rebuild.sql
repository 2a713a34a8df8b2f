-- The session holds an advisory lock as long as it lives, which shows that the ranking is being
-- built. Releases rankings of earlier, interrupted rebuilds of the period.
CREATE OR REPLACE FUNCTION centile_store.begin_rebuild(p_period_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_period     centile_store.periods;
    v_ranking_id bigint;
BEGIN
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    PERFORM centile_store.lock_buckets(v_period.board_id);
    PERFORM centile_store.lock_structure(v_period.board_id, true);
    SELECT * INTO STRICT v_period FROM centile_store.periods WHERE id = p_period_id;
    IF v_period.state = 'closed' THEN
        RAISE EXCEPTION 'the period is closed: it has an archive and no ranking' USING ERRCODE = 'CB409', HINT = 'Run centile refresh: it brings an archive up to the ledger.';
    ELSIF (SELECT b.is_template FROM centile_store.boards b WHERE b.id = v_period.board_id) THEN
        RAISE EXCEPTION 'rankings of templates have no bucket rows to rebuild' USING ERRCODE = 'CB409';
    ELSIF EXISTS (SELECT FROM centile_store.rankings r
                  WHERE r.period_id = p_period_id AND r.players_of = r.board_id AND r.id IS DISTINCT FROM v_period.ranking_id AND r.released_at IS NULL
                    AND centile_store.is_locked(1128615510, r.id)) THEN
        RAISE EXCEPTION 'another session is rebuilding the period' USING ERRCODE = 'CB409';
    END IF;
    UPDATE centile_store.rankings r SET released_at = clock_timestamp()
    WHERE r.period_id = p_period_id AND r.players_of = r.board_id AND r.id IS DISTINCT FROM v_period.ranking_id AND r.released_at IS NULL;
    PERFORM centile_store.forget_fillings(v_period.board_id);
    v_ranking_id := centile_store.create_ranking(v_period.board_id, p_period_id);
    -- Does not wait, because this session already holds other locks.
    IF NOT pg_try_advisory_lock(1128615510, centile_store.lock_key(v_ranking_id)) THEN
        RAISE EXCEPTION 'another session holds the lock of ranking %', v_ranking_id USING ERRCODE = 'CB409', HINT = 'See pg_locks, classid 1128615510.';
    END IF;
    INSERT INTO centile_store.fillings (board_id, ranking_id, lane, standings_up_to)
    SELECT v_period.board_id, v_ranking_id, n, CASE v_period.state WHEN 'preparing' THEN 0 ELSE centile_store.key_max() END
    FROM centile_store.boards b CROSS JOIN LATERAL generate_series(0, b.lanes - 1) AS n WHERE b.id = v_period.board_id;
    RETURN v_ranking_id;
END
$$;

COMMENT ON FUNCTION centile_store.begin_rebuild(bigint) IS
'Begins a new ranking of a period, beside the live one if there is one, and returns its id. Example: SELECT centile_store.begin_rebuild(1) > 0 AS is_begun;';
