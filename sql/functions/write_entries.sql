-- The caller holds the board's structure lock and the lane's row, or writes a ranking that no other
-- session writes.
--
-- p_was_keys: the rank keys before; NULL for a new entry. p_keys: the rank keys after; NULL deletes
-- the entry. p_ctids: where the caller has read each entry; NULL to find it by key. Only the holder
-- of the lane changes entries, but VACUUM FULL may move them: the function then raises 40001.
CREATE OR REPLACE FUNCTION centile_store.write_entries(
    p_lane smallint, p_order text, p_rankings bigint[], p_users bigint[], p_was_keys bigint[], p_ctids tid[], p_keys bigint[], p_ties bigint[], p_zeros boolean[])
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_written bigint;
    v_new     bigint;
    v_deleted bigint;
BEGIN
    -- Most players have an entry and keep it.
    UPDATE centile_store.leaderboard l
    SET score = centile.rank_key(e.rank_key, p_order), rank_key = e.rank_key, tie_key = e.tie_key,
        reached_at = centile.tie_key_time(e.tie_key), only_zeros = e.only_zeros
    FROM unnest(p_rankings, p_users, p_was_keys, p_ctids, p_keys, p_ties, p_zeros)
        AS e (ranking_id, user_id, was_key, ctid, rank_key, tie_key, only_zeros)
    WHERE l.ctid = coalesce(e.ctid, (SELECT x.ctid FROM centile_store.leaderboard x WHERE x.ranking_id = e.ranking_id AND x.user_id = e.user_id AND x.lane = p_lane))
      AND l.ranking_id = e.ranking_id AND l.user_id = e.user_id AND l.lane = p_lane AND e.was_key IS NOT NULL AND e.rank_key IS NOT NULL;
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF v_written = cardinality(p_rankings) THEN
        RETURN;
    END IF;
    INSERT INTO centile_store.leaderboard (ranking_id, user_id, score, rank_key, tie_key, reached_at, lane, only_zeros)
    SELECT e.ranking_id, e.user_id, centile.rank_key(e.rank_key, p_order), e.rank_key, e.tie_key,
           centile.tie_key_time(e.tie_key), p_lane, e.only_zeros
    FROM unnest(p_rankings, p_users, p_was_keys, p_keys, p_ties, p_zeros)
        AS e (ranking_id, user_id, was_key, rank_key, tie_key, only_zeros)
    WHERE e.was_key IS NULL;
    GET DIAGNOSTICS v_new = ROW_COUNT;
    DELETE FROM centile_store.leaderboard l
    USING unnest(p_rankings, p_users, p_keys) AS e (ranking_id, user_id, rank_key)
    WHERE e.rank_key IS NULL AND l.ranking_id = e.ranking_id AND l.user_id = e.user_id AND l.lane = p_lane;
    GET DIAGNOSTICS v_deleted = ROW_COUNT;
    IF v_written + v_new + v_deleted < cardinality(p_rankings) THEN
        IF (SELECT count(*) FROM unnest(p_rankings, p_users) AS e (ranking_id, user_id)
            JOIN centile_store.leaderboard l USING (ranking_id, user_id) WHERE l.lane = p_lane) < cardinality(p_rankings) - v_deleted THEN
            RAISE EXCEPTION 'entries are missing'
                USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
        END IF;
        RAISE EXCEPTION 'entries have moved' USING ERRCODE = 'serialization_failure', HINT = 'Retry.';
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.write_entries(smallint, text, bigint[], bigint[], bigint[], tid[], bigint[], bigint[], boolean[]) IS
'Writes entries of a lane. Example: SELECT centile_store.write_entries(0::smallint, ''desc'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
