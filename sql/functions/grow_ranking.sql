-- Gives a ranking of a template's board bucket rows, in one bucket; layout steps split it. Its players
-- have become many, and reads of the whole ranking slow. Applies all batches before writers have to wait.
-- Returns false if it has bucket rows already, or its period is closed.
CREATE OR REPLACE FUNCTION centile_store.grow_ranking(p_ranking_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_ranking centile_store.rankings;
BEGIN
    SELECT * INTO v_ranking FROM centile_store.rankings g WHERE g.id = p_ranking_id AND g.players_of <> g.board_id AND NOT g.has_bucket_rows;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM centile_store.lock_buckets(v_ranking.board_id);
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_ranking.board_id) a) LOOP END LOOP;
    PERFORM centile_store.lock_structure(v_ranking.board_id, true);
    WHILE NOT (SELECT a.is_done FROM centile_store.apply_board(v_ranking.board_id) a) LOOP END LOOP;
    UPDATE centile_store.rankings g
    SET has_bucket_rows = true, removed_bucket = 0, layout = g.layout + 1, buckets = DEFAULT, low_rank_keys = DEFAULT, low_tie_keys = DEFAULT, low_user_keys = DEFAULT
    FROM centile_store.periods p
    WHERE g.id = p_ranking_id AND NOT g.has_bucket_rows AND p.id = g.period_id AND p.ranking_id IS NOT NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
    SELECT p_ranking_id, n, array_fill(0, ARRAY[100]) FROM generate_series(0, v_ranking.lanes - 1) AS n;
    PERFORM centile_store.apply_changes(l.lane, NULL, l.rankings, l.users, l.nothing, l.nothing, l.keys, l.ties)
    FROM (SELECT e.lane, array_agg(p_ranking_id) AS rankings, array_agg(e.user_id) AS users, array_agg(NULL::bigint) AS nothing,
                 array_agg(e.rank_key) AS keys, array_agg(e.tie_key) AS ties
          FROM centile_store.leaderboard e WHERE e.ranking_id = p_ranking_id GROUP BY e.lane) l;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.grow_ranking(bigint) IS
'Gives a ranking of a template''s board bucket rows. Example: SELECT centile_store.grow_ranking(0);';
