-- The buckets begin where those of the last period of the same kind and segment with bounds do,
-- otherwise at the board's layout bounds. Without either, one bucket has all keys. The table of the
-- first bucket depends on the period's id, so that small rankings spread over the tables. By the
-- board's setting "buckets", the ranking has no bucket rows, and one bucket, 100, without a table. A
-- template's own rankings have no players: they stand for those of its boards.
CREATE OR REPLACE FUNCTION centile_store.create_ranking(p_board_id integer, p_period_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board      centile_store.boards;
    v_ranking_id bigint;
    v_bounds     bigint[];
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    IF v_board.is_template OR v_board.buckets = 'all_time' AND (SELECT p.kind <> 'all_time' FROM centile_store.periods p WHERE p.id = p_period_id) THEN
        RETURN centile_store.add_rankings(p_board_id, ARRAY[p_period_id], ARRAY[p_board_id]);
    END IF;
    SELECT x.shape INTO v_bounds
    FROM (SELECT CASE WHEN b.ranking_id IS NULL THEN b.shape ELSE centile_store.ranking_shape(b.ranking_id) END AS shape, b.starts_at
          FROM centile_store.periods p
          JOIN centile_store.periods b ON b.board_id = p.board_id AND b.kind = p.kind AND b.segment = p.segment AND b.starts_at < p.starts_at
          WHERE p.id = p_period_id
          -- During an import nothing is closed, so several periods may lack bounds.
          ORDER BY b.starts_at DESC LIMIT 8) x
    WHERE x.shape <> '{}'
    ORDER BY x.starts_at DESC LIMIT 1;
    IF v_bounds IS NULL THEN
        v_bounds := ARRAY(SELECT DISTINCT centile.rank_key(score, v_board.score_order) AS rank_key FROM unnest(v_board.layout_bounds) AS score
                          -- The lowest bucket begins at key_min anyway, and key_min has no
                          -- negative.
                          WHERE score > centile_store.key_min() ORDER BY rank_key);
    END IF;
    INSERT INTO centile_store.rankings (board_id, period_id, players_of, lanes, buckets, low_rank_keys, low_tie_keys, low_user_keys)
    SELECT p_board_id, p_period_id, p_board_id, v_board.lanes, ARRAY(SELECT ((p_period_id + n) % 100)::smallint FROM generate_series(0, 99) AS n ORDER BY n),
           centile_store.key_min() || v_bounds || array_fill(centile_store.key_max(), rest), e.ends, e.ends
    FROM (SELECT ARRAY[99 - cardinality(v_bounds)] AS rest) r
    CROSS JOIN LATERAL (
        SELECT array_fill(centile_store.key_min(), ARRAY[1 + cardinality(v_bounds)]) || array_fill(centile_store.key_max(), rest) AS ends) e
    RETURNING id INTO v_ranking_id;

    -- On a cluster, a worker may be down now, so each lane's first batch in this ranking creates the lane's
    -- counts.
    IF to_regclass('centile_lanes.groups') IS NULL THEN
        INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
        SELECT v_ranking_id, l.lane, array_fill(0, ARRAY[100])
        FROM centile_store.board_lanes l WHERE l.board_id = p_board_id;
    END IF;
    RETURN v_ranking_id;
END
$$;

COMMENT ON FUNCTION centile_store.create_ranking(integer, bigint) IS
'Creates an empty ranking with its first layout and returns its id. Example: SELECT centile_store.create_ranking(1, 1);';
