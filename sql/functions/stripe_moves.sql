-- The next stripes to be moved so that no bucket holds twice its share, in the order in which they can be moved one by one; no
-- row when nothing is to be done. Large ones, of more than half a target, should be cut first: a step is to be short. Worked
-- out from the counts of the stripes, which are the histogram; takes no lock.
--
-- A bucket of more than 1.8 times its share is relieved together with its neighbours: the fewest of them whose average is low
-- enough, and the wider the range the lower that has to be, so that small overflows are settled nearby and rows are not moved
-- again soon (the density thresholds of packed memory arrays: Itai, Konheim and Rodeh 1981; Bender, Demaine and Farach-Colton 2000). Within the range
-- stripes are spread evenly, each to the bucket that its middle falls into. A stripe may pass over buckets that are empty.
CREATE FUNCTION centile_store.stripe_moves(p_ranking_id bigint)
RETURNS TABLE (rank_key bigint, tie_key bigint, user_key bigint, from_bucket smallint, to_bucket smallint, players bigint, is_large boolean)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_loads   bigint[] := centile_store.bucket_totals(p_ranking_id);
    v_sums    bigint[] := '{}';
    v_total   bigint;
    v_share   double precision;
    v_largest bigint;
    v_full    integer;
    v_target  integer;
    v_low     integer;
    v_least   bigint;
    v_width   integer;
    v_sum     bigint;
BEGIN
    SELECT sum(u.players), array_agg(u.running ORDER BY u.place) INTO v_total, v_sums
    FROM (SELECT u.players, u.place, sum(u.players) OVER (ORDER BY u.place)::bigint AS running
          FROM unnest(v_loads) WITH ORDINALITY AS u (players, place)) u;
    v_share := v_total / 100.0;
    SELECT u.place INTO v_full FROM unnest(v_loads) WITH ORDINALITY AS u (players, place) ORDER BY u.players DESC, u.place LIMIT 1;
    SELECT max(u.players) INTO v_largest
    FROM generate_series(0, 99) AS n CROSS JOIN unnest(centile_store.stripe_totals(p_ranking_id, n::smallint)) AS u (players);
    -- Nor where stripes are so large beside a share that whole ones cannot be spread better: no move would be the last.
    SELECT b.stripe_target INTO v_target
    FROM centile_store.rankings g JOIN centile_store.boards b ON b.id = g.board_id
    WHERE g.id = p_ranking_id AND v_total >= b.balance_from;
    IF NOT FOUND OR v_loads[v_full] <= greatest(1.8 * v_share, v_share + v_largest) THEN
        RETURN;
    END IF;

    FOR w IN 2..100 LOOP
        v_width := w;
        v_least := NULL;
        FOR i IN greatest(1, v_full - w + 1)..least(v_full, 101 - w) LOOP
            v_sum := v_sums[i + w - 1] - coalesce(v_sums[i - 1], 0);
            IF v_least IS NULL OR v_sum < v_least THEN
                v_least := v_sum;
                v_low := i;
            END IF;
        END LOOP;
        -- A bucket may get half a stripe more than its part at either end.
        EXIT WHEN v_least <= w * v_share * least(1.8 - 0.8 * ln(w) / ln(100), 1.8 - v_largest / v_share);
    END LOOP;

    RETURN QUERY
    SELECT m.rank_key, m.tie_key, m.user_key, m.bucket, m.goal, m.players, 2 * m.players > v_target
    FROM (SELECT s.rank_key, s.tie_key, s.user_key, s.bucket, u.players,
                 (v_low - 1 + least(v_width - 1, div(v_width * (sum(u.players) OVER below - u.players / 2.0), greatest(v_least, 1))))::smallint AS goal
          FROM generate_series(v_low - 1, v_low + v_width - 2) AS n
          CROSS JOIN unnest(centile_store.stripe_totals(p_ranking_id, n::smallint)) WITH ORDINALITY AS u (players, place)
          JOIN centile_store.stripes s ON s.ranking_id = p_ranking_id AND s.bucket = n AND s.stripe = u.place
          WINDOW below AS (ORDER BY s.rank_key, s.tie_key, s.user_key)) m
    WHERE m.goal <> m.bucket
    -- Upwards from the top, downwards from the bottom: so that buckets follow the keys at every step.
    ORDER BY m.goal > m.bucket DESC,
             CASE WHEN m.goal > m.bucket THEN -row_number() OVER (ORDER BY m.rank_key, m.tie_key, m.user_key) ELSE row_number() OVER (ORDER BY m.rank_key, m.tie_key, m.user_key) END;
END
$$;

COMMENT ON FUNCTION centile_store.stripe_moves(bigint) IS
'Stripes to be moved next so that the buckets stay even. Example: SELECT from_bucket, to_bucket, players FROM centile_store.stripe_moves(1);';
