-- Moves a stripe, by its lower bound, to another bucket, its rows with it, and returns how many they were. NULL, and nothing
-- done, when the layout is another by now and buckets would no longer follow the keys. A stripe that should be split first is not
-- moved: the board's structure lock is not to be held for long.
CREATE FUNCTION centile_store.move_stripe(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_to_bucket smallint)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_stripe  centile_store.stripes;
    v_below   centile_store.stripes;
    v_above   centile_store.stripes;
    v_from    bigint[];
    v_to      bigint[];
    v_players bigint;
    v_moved   bigint;
BEGIN
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    SELECT s.* INTO v_stripe
    FROM centile_store.periods p
    JOIN centile_store.stripes s ON s.ranking_id = p.ranking_id
    WHERE p.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) = (p_rank_key, p_tie_key, p_user_key);
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO v_below FROM centile_store.stripes s
    WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) < (p_rank_key, p_tie_key, p_user_key)
    ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1;
    SELECT * INTO v_above FROM centile_store.stripes s
    WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) > (p_rank_key, p_tie_key, p_user_key)
    ORDER BY s.rank_key, s.tie_key, s.user_key LIMIT 1;
    v_from := centile_store.stripe_totals(p_ranking_id, v_stripe.bucket);
    v_to := coalesce(centile_store.stripe_totals(p_ranking_id, p_to_bucket), '{}');
    v_players := v_from[v_stripe.stripe];
    IF p_to_bucket NOT BETWEEN coalesce(v_below.bucket, 0) AND coalesce(v_above.bucket, 99) OR p_to_bucket = v_stripe.bucket
       OR v_players > (SELECT 3 * b.stripe_target FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id
                       WHERE g.id = p_ranking_id) THEN
        RETURN NULL;
    END IF;

    -- One more than it counts, from its end down: by its lower bound alone a scan would not end among equals (see count_in_stripe).
    EXECUTE format(
        'WITH near AS MATERIALIZED (
             SELECT ctid AS place, rank_key, tie_key, user_key FROM centile_store.%1$I
             WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) < ($5, $6, $7)
             ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT $9 + 1),
         moved AS (
             DELETE FROM centile_store.%1$I b USING near n
             WHERE b.ctid = n.place AND (n.rank_key, n.tie_key, n.user_key) >= ($2, $3, $4)
             RETURNING b.rank_key, b.tie_key, b.user_key)
         INSERT INTO centile_store.%2$I (bucket, ranking_id, rank_key, tie_key, user_key)
         SELECT $8, $1, m.rank_key, m.tie_key, m.user_key FROM moved m',
        centile_store.bucket_table(v_stripe.bucket), centile_store.bucket_table(p_to_bucket))
    USING p_ranking_id, p_rank_key, p_tie_key, p_user_key,
          coalesce(v_above.rank_key, 9223372036854775807), coalesce(v_above.tie_key, 9223372036854775807),
          coalesce(v_above.user_key, 9223372036854775807), p_to_bucket, v_players;
    GET DIAGNOSTICS v_moved = ROW_COUNT;
    IF v_moved <> v_players THEN
        RAISE EXCEPTION 'a stripe of bucket % counts % players and holds %', v_stripe.bucket, v_players, v_moved
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;

    UPDATE centile_store.stripes s SET bucket = p_to_bucket
    WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) = (p_rank_key, p_tie_key, p_user_key);
    PERFORM centile_store.number_stripes(p_ranking_id, v_stripe.bucket);
    PERFORM centile_store.number_stripes(p_ranking_id, p_to_bucket);
    PERFORM centile_store.put_stripe_counts(p_ranking_id, v_stripe.bucket, v_from[:v_stripe.stripe - 1] || v_from[v_stripe.stripe + 1:]);
    -- Upwards it becomes the lowest stripe of its bucket, downwards the highest.
    PERFORM centile_store.put_stripe_counts(p_ranking_id, p_to_bucket,
        CASE WHEN p_to_bucket > v_stripe.bucket THEN v_players || v_to ELSE v_to || v_players END);
    UPDATE centile_store.bucket_counts c
    SET counts = centile_store.add_at(c.counts, ARRAY[v_stripe.bucket + 1, p_to_bucket + 1], ARRAY[-v_players, v_players]),
        revision = c.revision + 1
    WHERE c.ranking_id = p_ranking_id AND c.lane = 0;
    UPDATE centile_store.rankings SET layout = layout + 1 WHERE id = p_ranking_id;
    RETURN v_moved;
END
$$;

COMMENT ON FUNCTION centile_store.move_stripe(bigint, bigint, bigint, bigint, smallint) IS
'Moves a stripe to another bucket and returns the rows moved. Example: SELECT centile_store.move_stripe(1, -9223372036854775808, -9223372036854775808, -9223372036854775808, 49::smallint);';
