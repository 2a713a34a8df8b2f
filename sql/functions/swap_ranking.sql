-- Applies the ledger rows after p_after, releases the old ranking and returns its id, all under the
-- exclusive structure lock; returns 0 if the period had none. NULL if there are more than p_limit
-- rows: catch up first. Raises lanes whose rows lag behind p_batches and p_times, which come from
-- the ledger, or behind the log. Then raises the batch of every lane: the new ranking may differ
-- from the old one, and no version may mean two states. These batches count as applied.
CREATE OR REPLACE FUNCTION centile_store.swap_ranking(
    p_ranking_id bigint, p_after bigint, p_limit integer DEFAULT 500, p_batches bigint[] DEFAULT NULL, p_times timestamptz[] DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    v_period centile_store.periods;
    v_end    bigint;
BEGIN
    -- Apply most of the log before writers have to wait.
    PERFORM centile_store.lock_buckets(g.board_id) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    WHILE NOT (SELECT a.is_done FROM centile_store.rankings g CROSS JOIN LATERAL centile_store.apply_board(g.board_id) a WHERE g.id = p_ranking_id) LOOP END LOOP;
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    WHILE NOT (SELECT a.is_done FROM centile_store.rankings g CROSS JOIN LATERAL centile_store.apply_board(g.board_id) a WHERE g.id = p_ranking_id) LOOP END LOOP;
    SELECT p.* INTO v_period FROM centile_store.rankings g JOIN centile_store.periods p ON p.id = g.period_id
    WHERE g.id = p_ranking_id AND g.released_at IS NULL;
    IF NOT FOUND OR v_period.state = 'closed' OR v_period.ranking_id = p_ranking_id THEN
        RAISE EXCEPTION 'the period was closed, or another session has rebuilt it' USING ERRCODE = 'CB409';
    END IF;
    v_end := centile_store.ledger_end();
    IF (SELECT count(*) FROM (SELECT FROM centile_store.score_transactions t
                              WHERE t.board_id = v_period.board_id AND t.id > p_after AND t.id <= v_end LIMIT p_limit + 1) x) > p_limit THEN
        RETURN NULL;
    END IF;
    PERFORM centile_store.catch_up(g.id, n::smallint, p_after, v_end, 0, p_limit)
    FROM centile_store.rankings g CROSS JOIN LATERAL generate_series(0, g.lanes - 1) AS n WHERE g.id = p_ranking_id;
    -- Players who have joined or left the segment meanwhile: the ledger does not contain moves.
    PERFORM centile_store.place_entries(m.lane, centile_store.entry_changes(ARRAY[p_ranking_id], array_agg(DISTINCT m.user_id)))
    FROM centile_store.rankings g
    JOIN centile_store.segment_members m ON m.board_id = g.board_id AND m.segment = v_period.segment AND m.changed_at > g.created_at - interval '1 minute'
    WHERE g.id = p_ranking_id AND v_period.segment <> ''
    GROUP BY m.lane;
    -- Restores missing lanes, and raises those that were set back.
    INSERT INTO centile_store.board_lanes (board_id, lane, batch, last_at)
    SELECT v_period.board_id, n - 1, 0, '2000-01-01 00:00:00+00' FROM generate_subscripts(p_batches, 1) AS n
    WHERE NOT EXISTS (SELECT FROM centile_store.board_lanes l WHERE l.board_id = v_period.board_id AND l.lane = n - 1);
    UPDATE centile_store.board_lanes l
    SET batch = greatest(l.batch, x.batch + 1), last_at = greatest(l.last_at, x.at)
    FROM (SELECT n - 1 AS lane, greatest(p_batches[n], max(t.batch), centile_store.last_logged(v_period.board_id, (n - 1)::smallint)) AS batch,
                 greatest(p_times[n], max(t.occurred_at)) AS at
          FROM generate_subscripts(p_batches, 1) AS n
          LEFT JOIN centile_store.score_transactions t ON t.board_id = v_period.board_id AND t.lane = n - 1 AND t.id > p_after
          GROUP BY n) x
    WHERE l.board_id = v_period.board_id AND l.lane = x.lane AND (l.batch < x.batch OR l.last_at < x.at);
    PERFORM centile_store.advance_lane(x.newest, (x.newest).last_at)
    FROM (SELECT DISTINCT ON (l.lane) l AS newest FROM centile_store.board_lanes l
          WHERE l.board_id = v_period.board_id ORDER BY l.lane, l.batch DESC) x;
    DELETE FROM centile_store.applied a WHERE a.board_id = v_period.board_id;
    INSERT INTO centile_store.applied (board_id, lane, batch)
    SELECT l.board_id, l.lane, max(l.batch) FROM centile_store.board_lanes l WHERE l.board_id = v_period.board_id GROUP BY l.board_id, l.lane;
    -- The counts of the new ranking have no batch as revision yet.
    UPDATE centile_store.bucket_counts c SET revision = a.batch
    FROM centile_store.applied a WHERE c.ranking_id = p_ranking_id AND a.board_id = v_period.board_id AND a.lane = c.lane;
    -- Keeps the old ranking's time of creation, by which due_periods recognizes a late season.
    UPDATE centile_store.rankings g SET created_at = o.created_at
    FROM centile_store.rankings o WHERE g.id = p_ranking_id AND o.id = v_period.ranking_id;
    UPDATE centile_store.periods SET ranking_id = p_ranking_id, state = 'open' WHERE id = v_period.id;
    -- A damaged pointer may name the ranking of another period.
    UPDATE centile_store.rankings SET released_at = clock_timestamp() WHERE id = v_period.ranking_id AND period_id = v_period.id;
    RETURN coalesce(v_period.ranking_id, 0);
END
$$;

COMMENT ON FUNCTION centile_store.swap_ranking(bigint, bigint, integer, bigint[], timestamptz[]) IS
'Makes a newly built ranking the current one of its period. Example: SELECT r.ranking_id IS NOT NULL AS is_begun, centile_store.fill_entries(r.ranking_id), centile_store.fill_buckets(r.ranking_id), centile_store.swap_ranking(r.ranking_id, r.ledger_end) FROM centile_store.begin_rebuild(1) r;';
