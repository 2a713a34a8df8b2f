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
    v_is_up   boolean;
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

    v_moved := (SELECT m FROM centile_store.move_rows(v_stripe.bucket, p_to_bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key,
        coalesce(v_above.rank_key, 9223372036854775807), coalesce(v_above.tie_key, 9223372036854775807),
        coalesce(v_above.user_key, 9223372036854775807), v_players) AS m);
    IF v_moved <> v_players THEN
        RAISE EXCEPTION 'a stripe of bucket % counts % players and holds %', v_stripe.bucket, v_players, v_moved
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;

    -- Upwards it becomes the lowest stripe of its bucket, downwards the highest. The others of the lower bucket keep their numbers.
    v_is_up := p_to_bucket > v_stripe.bucket;
    UPDATE centile_store.stripes s SET stripe = s.stripe + CASE WHEN v_is_up THEN 1 ELSE -1 END
    WHERE s.ranking_id = p_ranking_id AND s.bucket = greatest(v_stripe.bucket, p_to_bucket)
      AND (s.rank_key, s.tie_key, s.user_key) <> (p_rank_key, p_tie_key, p_user_key);
    UPDATE centile_store.stripes s SET bucket = p_to_bucket, stripe = CASE WHEN v_is_up THEN 1 ELSE cardinality(v_to) + 1 END
    WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) = (p_rank_key, p_tie_key, p_user_key);
    PERFORM centile_store.put_stripe_counts(p_ranking_id, v_stripe.bucket, v_from[:v_stripe.stripe - 1] || v_from[v_stripe.stripe + 1:]);
    PERFORM centile_store.put_stripe_counts(p_ranking_id, p_to_bucket, CASE WHEN v_is_up THEN v_players || v_to ELSE v_to || v_players END);
    UPDATE centile_store.bucket_counts c
    SET counts = centile_store.add_at(c.counts, ARRAY[v_stripe.bucket + 1, p_to_bucket + 1], ARRAY[-v_players, v_players]),
        revision = c.revision + 1
    WHERE c.ranking_id = p_ranking_id AND c.lane = 0
      -- Of the versions that a snapshot held elsewhere keeps, the newest.
      AND c.revision = (SELECT x.revision FROM centile_store.bucket_counts x
                        WHERE x.ranking_id = p_ranking_id AND x.lane = 0 ORDER BY x.revision DESC LIMIT 1);
    UPDATE centile_store.rankings SET layout = layout + 1 WHERE id = p_ranking_id;
    RETURN v_moved;
END
$$;

COMMENT ON FUNCTION centile_store.move_stripe(bigint, bigint, bigint, bigint, smallint) IS
'Moves a stripe to another bucket and returns the rows moved. Example: SELECT centile_store.move_stripe(1, -9223372036854775808, -9223372036854775808, -9223372036854775808, 49::smallint);';
