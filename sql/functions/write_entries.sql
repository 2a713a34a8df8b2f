-- The one function that changes standings: entries, bucket rows and counts together, so that their
-- numbers always agree. The caller holds the board's structure lock and the lane's row, or writes a
-- ranking that no other session writes.
--
-- entry_*: the entries that change. entry_was_keys: the rank keys before; NULL for a new entry.
-- entry_keys: the rank keys after; NULL deletes the entry. entry_ctids: where the caller has read
-- each entry; NULL to find it by key. Only the holder of the lane changes entries, but VACUUM FULL
-- may move them: the function then raises 40001.
--
-- row_*: changes of bucket rows, ordered by bucket. row_users: user keys. Group n changes bucket
-- group_buckets[n]: updates from group_updates[n], then deletions from group_deletes[n], then
-- insertions from group_inserts[n] to the next group. count_*: the resulting changes of bucket
-- counts.
CREATE OR REPLACE FUNCTION centile_store.write_entries(
    p_lane smallint, p_order text,
    entry_rankings bigint[], entry_users bigint[], entry_was_keys bigint[], entry_ctids tid[], entry_keys bigint[], entry_ties bigint[], entry_zeros boolean[],
    group_buckets smallint[], group_updates integer[], group_deletes integer[], group_inserts integer[],
    row_rankings bigint[], row_users bigint[], row_was_keys bigint[], row_was_ties bigint[], row_keys bigint[], row_ties bigint[],
    count_rankings bigint[], count_buckets smallint[], count_changes integer[])
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_written  bigint;
    v_new      bigint;
    v_deleted  bigint;
    v_expected bigint := 0;
    v_found    bigint := 0;
BEGIN
    -- Most players have an entry and keep it.
    UPDATE centile_store.leaderboard l
    SET score = centile.rank_key(e.rank_key, p_order), rank_key = e.rank_key, tie_key = e.tie_key,
        reached_at = centile.tie_key_time(e.tie_key), only_zeros = e.only_zeros
    FROM unnest(entry_rankings, entry_users, entry_was_keys, entry_ctids, entry_keys, entry_ties, entry_zeros)
        AS e (ranking_id, user_id, was_key, ctid, rank_key, tie_key, only_zeros)
    WHERE l.ctid = coalesce(e.ctid, (SELECT x.ctid FROM centile_store.leaderboard x WHERE x.ranking_id = e.ranking_id AND x.user_id = e.user_id AND x.lane = p_lane))
      AND l.ranking_id = e.ranking_id AND l.user_id = e.user_id AND l.lane = p_lane AND e.was_key IS NOT NULL AND e.rank_key IS NOT NULL;
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF v_written < cardinality(entry_rankings) THEN
        INSERT INTO centile_store.leaderboard (ranking_id, user_id, score, rank_key, tie_key, reached_at, lane, only_zeros)
        SELECT e.ranking_id, e.user_id, centile.rank_key(e.rank_key, p_order), e.rank_key, e.tie_key,
               centile.tie_key_time(e.tie_key), p_lane, e.only_zeros
        FROM unnest(entry_rankings, entry_users, entry_was_keys, entry_keys, entry_ties, entry_zeros)
            AS e (ranking_id, user_id, was_key, rank_key, tie_key, only_zeros)
        WHERE e.was_key IS NULL;
        GET DIAGNOSTICS v_new = ROW_COUNT;
        DELETE FROM centile_store.leaderboard l
        USING unnest(entry_rankings, entry_users, entry_keys) AS e (ranking_id, user_id, rank_key)
        WHERE e.rank_key IS NULL AND l.ranking_id = e.ranking_id AND l.user_id = e.user_id AND l.lane = p_lane;
        GET DIAGNOSTICS v_deleted = ROW_COUNT;
        IF v_written + v_new + v_deleted < cardinality(entry_rankings) THEN
            IF (SELECT count(*) FROM unnest(entry_rankings, entry_users) AS e (ranking_id, user_id)
                JOIN centile_store.leaderboard l USING (ranking_id, user_id) WHERE l.lane = p_lane) < cardinality(entry_rankings) - v_deleted THEN
                RAISE EXCEPTION 'entries are missing'
                    USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
            END IF;
            RAISE EXCEPTION 'entries have moved' USING ERRCODE = 'serialization_failure', HINT = 'Retry.';
        END IF;
    END IF;

    -- One bucket table at a time: a statement on the parent would open all hundred.
    FOR n IN 1..cardinality(group_buckets) LOOP
        v_expected := v_expected + group_inserts[n] - group_updates[n];
        v_found := v_found + centile_store.change_bucket_rows(group_buckets[n], p_lane, group_updates[n], group_deletes[n], group_inserts[n],
            coalesce(group_updates[n + 1] - 1, cardinality(row_rankings)),
            row_rankings, row_users, row_was_keys, row_was_ties, row_keys, row_ties);
    END LOOP;
    IF v_found <> v_expected THEN
        RAISE EXCEPTION 'bucket rows are missing: % of % found', v_found, v_expected
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;

    IF count_rankings <> '{}' THEN
        PERFORM centile_store.change_counts(p_lane, count_rankings, count_buckets, count_changes);
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.write_entries(smallint, text, bigint[], bigint[], bigint[], tid[], bigint[], bigint[], boolean[], smallint[], integer[], integer[], integer[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[], smallint[], integer[]) IS
'Writes entries with their bucket rows and counts. Example: SELECT centile_store.write_entries(0::smallint, ''desc'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'');';
