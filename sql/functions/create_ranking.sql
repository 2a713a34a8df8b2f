-- An empty ranking for a period: its first stripes, spread over the 100 buckets, and counts of zero for every lane. They are cut
-- where the players of the period before were (the last one of the kind that has a shape, closed or not), in as many parts as
-- there are buckets, since nobody has scored yet; else at the board's layout bounds; else there is one.
CREATE FUNCTION centile_store.create_ranking(p_board_id integer, p_period_id bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_board      centile_store.boards;
    v_ranking_id bigint;
    v_shape      bigint[];
    v_before     record;
BEGIN
    SELECT * INTO STRICT v_board FROM centile_store.boards WHERE id = p_board_id;
    INSERT INTO centile_store.rankings (board_id, period_id, lanes) VALUES (p_board_id, p_period_id, v_board.lanes) RETURNING id INTO v_ranking_id;

    -- One after the other, and not many: while an import goes on nothing is closed, and each look at an open one reads its counts.
    FOR v_before IN
        SELECT b.ranking_id, b.shape
        FROM centile_store.periods p
        JOIN centile_store.periods b ON b.board_id = p.board_id AND b.kind = p.kind AND b.starts_at < p.starts_at
        WHERE p.id = p_period_id AND (b.ranking_id IS NOT NULL OR b.shape <> '{}')
        ORDER BY b.starts_at DESC LIMIT 8
    LOOP
        v_shape := nullif(CASE WHEN v_before.ranking_id IS NULL THEN v_before.shape
                               ELSE centile_store.ranking_shape(v_before.ranking_id) END, '{}');
        EXIT WHEN v_shape IS NOT NULL;
    END LOOP;

    WITH bound AS (
        SELECT unnest(v_shape) AS rank_key
        UNION ALL
        SELECT DISTINCT centile.rank_key(score, v_board.score_order) FROM unnest(v_board.layout_bounds) AS score
        -- The lowest stripe begins there anyway, and it has no negative.
        WHERE v_shape IS NULL AND score > -9223372036854775808
        UNION ALL
        SELECT -9223372036854775808
    ), ordered AS (
        SELECT rank_key, row_number() OVER (ORDER BY rank_key) - 1 AS place, count(*) OVER () AS stripes FROM bound
    )
    -- Evenly over the buckets; a lone stripe goes to the middle, from where it can be spread both ways.
    INSERT INTO centile_store.stripes (ranking_id, bucket, stripe, rank_key, tie_key, user_key)
    SELECT v_ranking_id, (place * 100 + 50) / stripes, 1, rank_key, -9223372036854775808, -9223372036854775808
    FROM ordered;

    INSERT INTO centile_store.stripe_counts (ranking_id, bucket, lane, counts)
    SELECT v_ranking_id, s.bucket, l.lane, '{0}'
    FROM centile_store.stripes s CROSS JOIN centile_store.board_lanes l
    WHERE s.ranking_id = v_ranking_id AND l.board_id = p_board_id;

    INSERT INTO centile_store.bucket_counts (ranking_id, lane, counts)
    SELECT v_ranking_id, l.lane, array_fill(0::bigint, ARRAY[100])
    FROM centile_store.board_lanes l WHERE l.board_id = p_board_id;

    RETURN v_ranking_id;
END
$$;

COMMENT ON FUNCTION centile_store.create_ranking(integer, bigint) IS
'Makes an empty ranking with its first layout and returns its id. Example: SELECT centile_store.create_ranking(1, 1);';
