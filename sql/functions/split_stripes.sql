-- Cuts every stripe of a ranking that has grown past twice the target into stripes of about the target's size. Only bounds
-- and counts change, no row moves. Holds the board's structure lock exclusively to the end of the transaction.
CREATE FUNCTION centile.split_stripes(p_ranking_id bigint, p_target integer DEFAULT 400) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_large record;
    v_next  centile_store.stripes;
    v_cuts  record;
    v_made  integer := 0;
BEGIN
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    -- Let go meanwhile: its rows are being removed.
    IF NOT EXISTS (SELECT FROM centile_store.periods p WHERE p.ranking_id = p_ranking_id) THEN
        RETURN 0;
    END IF;
    -- From the top of each bucket down, so that the numbers of stripes still to be cut stay what they are.
    FOR v_large IN
        SELECT s.*, c.players, ceil(c.players::numeric / p_target)::integer AS pieces
        FROM (SELECT bucket, place, sum(players)::bigint AS players
              FROM centile_store.stripe_counts x, unnest(x.counts) WITH ORDINALITY AS u (players, place)
              WHERE x.ranking_id = p_ranking_id GROUP BY bucket, place
              HAVING sum(players) > 2 * p_target) c
        JOIN centile_store.stripes s ON s.ranking_id = p_ranking_id AND s.bucket = c.bucket AND s.stripe = c.place
        ORDER BY s.bucket, s.stripe DESC
    LOOP
        SELECT * INTO v_next FROM centile_store.stripes s
        WHERE s.ranking_id = p_ranking_id
          AND (s.rank_key, s.tie_key, s.user_key) > (v_large.rank_key, v_large.tie_key, v_large.user_key)
        ORDER BY s.rank_key, s.tie_key, s.user_key LIMIT 1;

        -- The first key of each piece but the lowest, and the players of all pieces.
        EXECUTE format(
            'WITH row AS (
                 SELECT rank_key, tie_key, user_key,
                        (row_number() OVER (ORDER BY rank_key, tie_key, user_key) - 1) * $8 / $9 AS piece
                 FROM centile_store.%I
                 WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) >= ($2, $3, $4)
                   AND ($5 IS NULL OR (rank_key, tie_key, user_key) < ($5, $6, $7))
             ), piece AS (
                 SELECT piece, count(*)::integer AS players, min(ARRAY[rank_key, tie_key, user_key]) AS low FROM row GROUP BY piece
             )
             SELECT array_agg(players ORDER BY piece) AS players, sum(players) AS found,
                    jsonb_agg(low ORDER BY piece) FILTER (WHERE piece > 0) AS bounds FROM piece',
            centile_store.bucket_table(v_large.bucket))
        INTO v_cuts
        USING p_ranking_id, v_large.rank_key, v_large.tie_key, v_large.user_key,
              v_next.rank_key, v_next.tie_key, v_next.user_key, v_large.pieces, v_large.players;
        IF v_cuts.found IS DISTINCT FROM v_large.players THEN
            RAISE EXCEPTION 'stripe % of bucket % counts % players and holds %', v_large.stripe, v_large.bucket, v_large.players, v_cuts.found
                USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
        END IF;

        INSERT INTO centile_store.stripes (ranking_id, bucket, stripe, rank_key, tie_key, user_key)
        SELECT p_ranking_id, v_large.bucket, v_large.stripe, (b.low ->> 0)::bigint, (b.low ->> 1)::bigint, (b.low ->> 2)::bigint
        FROM jsonb_array_elements(v_cuts.bounds) AS b (low);

        -- Lane 0 takes what the pieces have; what the other lanes held of the stripe stays with its lowest piece.
        UPDATE centile_store.stripe_counts c
        SET counts = c.counts[:v_large.stripe - 1]
            || CASE WHEN c.lane = 0
                    THEN (c.counts[v_large.stripe] - v_large.players + v_cuts.players[1])::integer || v_cuts.players[2:]
                    ELSE c.counts[v_large.stripe] || array_fill(0, ARRAY[v_large.pieces - 1]) END
            || c.counts[v_large.stripe + 1:]
        WHERE c.ranking_id = p_ranking_id AND c.bucket = v_large.bucket;
        v_made := v_made + v_large.pieces - 1;
    END LOOP;
    IF v_made > 0 THEN
        -- Numbered anew once for all cuts: once for each would cost the square of their number.
        UPDATE centile_store.stripes s SET stripe = n.stripe
        FROM (SELECT rank_key, tie_key, user_key,
                     row_number() OVER (PARTITION BY bucket ORDER BY rank_key, tie_key, user_key) AS stripe
              FROM centile_store.stripes WHERE ranking_id = p_ranking_id) n
        WHERE s.ranking_id = p_ranking_id AND s.stripe <> n.stripe
          AND (s.rank_key, s.tie_key, s.user_key) = (n.rank_key, n.tie_key, n.user_key);
        UPDATE centile_store.rankings SET layout = layout + 1 WHERE id = p_ranking_id;
    END IF;
    RETURN v_made;
END
$$;

COMMENT ON FUNCTION centile.split_stripes(bigint, integer) IS
'Splits stripes past twice the target and returns how many were added. Example: SELECT centile.split_stripes(ranking_id, 1) FROM centile.periods WHERE board = ''main'' AND kind = ''all_time'';';
