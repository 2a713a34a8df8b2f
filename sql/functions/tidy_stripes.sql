-- Gives the stripes of a bucket the size they should have: those past so many targets are cut into pieces of about the target, or as
-- large as they may be if that is less, neighbours that together have less than half of it become one. Bounds and counts change, no
-- row moves. Passes over four thousand rows at most, so that the board's structure lock is not held for long: call it until it gives 0,
-- the number of changes.
CREATE FUNCTION centile_store.tidy_stripes(p_ranking_id bigint, p_bucket smallint, p_largest double precision DEFAULT 2) RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_target  integer;
    v_left    integer := 4000;
    v_players bigint[];
    v_size    bigint;
    v_pieces  bigint;
    -- Players of the stripes as they will be; of each stripe as it is the number that it will have, 0 for those that go.
    v_new     bigint[] := '{}';
    v_last    integer := 0;
    v_number  integer[] := '{}';
    -- What is to be cut, by its number to be, the size of the pieces and how many they are.
    v_cut     integer[] := '{}';
    v_sizes   bigint[] := '{}';
    v_many    bigint[] := '{}';
    v_is_cut  boolean := false;
    v_changes integer := 0;
    v_stripe  record;
    v_found   record;
    -- Where the last piece begins: the next one ends there.
    v_bound   centile_store.stripes;
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
    FOR v_place IN 1..coalesce(cardinality(v_players), 0) LOOP
        -- Never into one that is cut in this step: it is cut from its own upper end.
        IF v_last > 0 AND NOT v_is_cut AND 2 * (v_new[v_last] + v_players[v_place]) < v_target THEN
            v_new[v_last] := v_new[v_last] + v_players[v_place];
            v_number[v_place] := 0;
            v_changes := v_changes + 1;
            CONTINUE;
        END IF;
        v_last := v_last + 1;
        v_number[v_place] := v_last;
        v_new[v_last] := v_players[v_place];
        v_is_cut := false;
        CONTINUE WHEN v_players[v_place] <= p_largest * v_target;
        -- From the upper end down, as far as may be read; the rest keeps the lower bound.
        v_size := ceil(v_players[v_place] / ceil(v_players[v_place] / (v_target * least(p_largest, 1))));
        v_pieces := least((v_players[v_place] - 1) / v_size, v_left / v_size);
        CONTINUE WHEN v_pieces = 0;
        v_is_cut := true;
        v_new[v_last] := v_players[v_place] - v_pieces * v_size;
        FOR v_piece IN 1..v_pieces LOOP
            v_new[v_last + v_piece] := v_size;
        END LOOP;
        v_cut := v_cut || v_last;
        v_sizes := v_sizes || v_size;
        v_many := v_many || v_pieces;
        v_last := v_last + v_pieces;
        v_left := v_left - v_pieces * v_size;
        v_changes := v_changes + v_pieces;
    END LOOP;
    IF v_changes = 0 THEN
        RETURN 0;
    END IF;
    -- Numbers that do not go with the rows would get the counts of others.
    IF (SELECT count(*) FROM centile_store.stripes s WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket)
       <> cardinality(v_players) THEN
        RAISE EXCEPTION 'bucket % counts % stripes, and has others', p_bucket, cardinality(v_players)
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;

    DELETE FROM centile_store.stripes s
    WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket AND v_number[s.stripe] = 0;
    UPDATE centile_store.stripes s SET stripe = v_number[s.stripe]
    WHERE s.ranking_id = p_ranking_id AND s.bucket = p_bucket AND v_number[s.stripe] <> s.stripe;
    FOR v_stripe IN
        SELECT s.rank_key, s.tie_key, s.user_key, s.stripe, c.size, c.pieces, n.rank_key AS next_rank_key, n.tie_key AS next_tie_key,
               n.user_key AS next_user_key
        FROM unnest(v_cut, v_sizes, v_many) AS c (stripe, size, pieces)
        JOIN centile_store.stripes s ON s.ranking_id = p_ranking_id AND s.bucket = p_bucket AND s.stripe = c.stripe
        LEFT JOIN LATERAL (
            SELECT n.rank_key, n.tie_key, n.user_key FROM centile_store.stripes n
            WHERE n.ranking_id = p_ranking_id AND (n.rank_key, n.tie_key, n.user_key) > (s.rank_key, s.tie_key, s.user_key)
            ORDER BY n.rank_key, n.tie_key, n.user_key LIMIT 1) n ON true
    LOOP
        v_bound := (NULL, NULL, NULL, coalesce(v_stripe.next_rank_key, 9223372036854775807), coalesce(v_stripe.next_tie_key, 9223372036854775807),
                    coalesce(v_stripe.next_user_key, 9223372036854775807));
        FOR v_piece IN 1..v_stripe.pieces LOOP
            SELECT array_agg(k.rank_key) AS rank_keys, array_agg(k.tie_key) AS tie_keys, array_agg(k.user_key) AS user_keys
            INTO v_found
            FROM centile_store.stripe_cut(p_bucket, p_ranking_id, v_stripe.rank_key, v_stripe.tie_key, v_stripe.user_key,
                v_bound.rank_key, v_bound.tie_key, v_bound.user_key, v_stripe.size) k;
            -- At least one is left below the lowest cut.
            IF cardinality(v_found.rank_keys) IS DISTINCT FROM 2 THEN
                RAISE EXCEPTION 'a stripe of bucket % counts % players and holds fewer', p_bucket,
                        v_new[v_stripe.stripe] + v_stripe.pieces * v_stripe.size
                    USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
            END IF;
            -- A piece begins at its lowest key; where nobody below shares that rank key, or that time, at all of these: see count_in_stripe.
            v_bound := (p_ranking_id, p_bucket, v_stripe.stripe + v_stripe.pieces - v_piece + 1, v_found.rank_keys[1],
                CASE WHEN v_found.rank_keys[1] = v_found.rank_keys[2] THEN v_found.tie_keys[1] ELSE -9223372036854775808 END,
                CASE WHEN (v_found.rank_keys[1], v_found.tie_keys[1]) = (v_found.rank_keys[2], v_found.tie_keys[2])
                     THEN v_found.user_keys[1] ELSE -9223372036854775808 END);
            INSERT INTO centile_store.stripes SELECT v_bound.*;
        END LOOP;
    END LOOP;
    PERFORM centile_store.put_stripe_counts(p_ranking_id, p_bucket, v_new);
    UPDATE centile_store.rankings SET layout = layout + 1 WHERE id = p_ranking_id;
    RETURN v_changes;
END
$$;

COMMENT ON FUNCTION centile_store.tidy_stripes(bigint, smallint, double precision) IS
'Splits and merges stripes of a bucket by their size and returns how many changes that took. Example: SELECT centile_store.tidy_stripes(1, 50::smallint);';
