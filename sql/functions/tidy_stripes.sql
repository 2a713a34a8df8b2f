-- Gives the stripes of a bucket the size they should have: those past so many targets are cut into pieces of about the target, or as
-- large as they may be if that is less, neighbours that together have less than half of it become one. Bounds and counts change, no row moves. Reads some
-- thousand rows at most, so that the board's structure lock is not held for long: call it until it gives 0, the number of changes.
CREATE FUNCTION centile_store.tidy_stripes(p_ranking_id bigint, p_bucket smallint, p_largest double precision DEFAULT 2) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_target  integer;
    v_left    integer := 1000;
    v_players bigint[];
    v_stripe  record;
    v_size    integer;
    v_cuts    integer;
    v_cut     record;
    v_new     bigint[] := '{}';
    v_last    integer := 0;
    v_changes integer := 0;
BEGIN
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    SELECT b.stripe_target INTO v_target
    FROM centile_store.rankings g
    JOIN centile_store.periods p ON p.ranking_id = g.id
    JOIN centile_store.boards b ON b.id = g.board_id
    WHERE g.id = p_ranking_id;
    -- Let go meanwhile: its rows are being removed.
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    v_left := greatest(v_left, v_target);
    v_players := centile_store.stripe_totals(p_ranking_id, p_bucket);
    FOR v_stripe IN
        SELECT s.rank_key, s.tie_key, s.user_key, v_players[s.stripe] AS players,
               lead(ARRAY[s.rank_key, s.tie_key, s.user_key], 1, ARRAY[n.rank_key, n.tie_key, n.user_key])
                   OVER (ORDER BY s.stripe) AS next
        FROM centile_store.stripes s
        -- Where the bucket ends.
        LEFT JOIN LATERAL (
            SELECT n.rank_key, n.tie_key, n.user_key FROM centile_store.stripes n
            WHERE n.ranking_id = p_ranking_id AND n.bucket > p_bucket ORDER BY n.bucket, n.stripe LIMIT 1) n ON true
        WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket
        ORDER BY s.stripe
    LOOP
        IF v_last > 0 AND 2 * (v_new[v_last] + v_stripe.players) < v_target THEN
            DELETE FROM centile_store.stripes s
            WHERE s.ranking_id = p_ranking_id
              AND (s.rank_key, s.tie_key, s.user_key) = (v_stripe.rank_key, v_stripe.tie_key, v_stripe.user_key);
            v_new[v_last] := v_new[v_last] + v_stripe.players;
            v_changes := v_changes + 1;
            CONTINUE;
        END IF;
        v_cuts := 0;
        IF v_stripe.players > p_largest * v_target THEN
            -- From the upper end down, as far as may be read; the rest keeps the lower bound.
            v_size := ceil(v_stripe.players / ceil(v_stripe.players / (v_target * least(p_largest, 1))));
            v_cuts := least((v_stripe.players - 1) / v_size, v_left / v_size);
        END IF;
        v_new := v_new || (v_stripe.players - v_cuts * coalesce(v_size, 0));
        v_last := v_last + 1;
        CONTINUE WHEN v_cuts = 0;

        SELECT * INTO v_cut
        FROM centile_store.stripe_cuts(p_bucket, p_ranking_id, v_stripe.rank_key, v_stripe.tie_key, v_stripe.user_key,
            coalesce(v_stripe.next[1], 9223372036854775807), coalesce(v_stripe.next[2], 9223372036854775807),
            coalesce(v_stripe.next[3], 9223372036854775807), v_size, v_cuts);
        -- At least one is left below the lowest cut.
        IF v_cut.found <= v_cuts * v_size THEN
            RAISE EXCEPTION 'a stripe of bucket % counts % players and holds %', p_bucket, v_stripe.players, v_cut.found
                USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
        END IF;
        INSERT INTO centile_store.stripes (ranking_id, bucket, stripe, rank_key, tie_key, user_key)
        SELECT p_ranking_id, p_bucket, 1, b.rank_key, b.tie_key, b.user_key
        FROM unnest(v_cut.rank_keys, v_cut.tie_keys, v_cut.user_keys) AS b (rank_key, tie_key, user_key);
        v_new := v_new || array_fill(v_size::bigint, ARRAY[v_cuts]);
        v_last := v_last + v_cuts;
        v_left := v_left - v_cuts * v_size;
        v_changes := v_changes + v_cuts;
    END LOOP;
    IF v_changes > 0 THEN
        PERFORM centile_store.number_stripes(p_ranking_id, p_bucket);
        PERFORM centile_store.put_stripe_counts(p_ranking_id, p_bucket, v_new);
        UPDATE centile_store.rankings SET layout = layout + 1 WHERE id = p_ranking_id;
    END IF;
    RETURN v_changes;
END
$$;

COMMENT ON FUNCTION centile_store.tidy_stripes(bigint, smallint, double precision) IS
'Splits and merges stripes of a bucket by their size and returns how many changes that took. Example: SELECT centile_store.tidy_stripes(1, 50::smallint);';
