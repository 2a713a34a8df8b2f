-- Moves the boundary between two buckets beside each other: up to p_rows rows of the bucket at place
-- p_from, those nearest to its neighbour at place p_to, go there, with counts and bound. Returns the
-- number of rows. NULL, and nothing done, when the layout is another by now or the ranking is not
-- its period's any more.
--
-- One row more than is moved is read: a bound that no equal score lies below is put below all of
-- them, so that ranks that are shared are counted in one bucket (see above_in_bucket).
CREATE OR REPLACE FUNCTION centile_store.move_boundary(p_ranking_id bigint, p_layout integer, p_from integer, p_to integer, p_rows integer)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_ranking centile_store.rankings;
    v_up      boolean := p_to > p_from;
    v_moved   record;
    v_players bigint;
    v_upper   integer := greatest(p_from, p_to);
BEGIN
    -- Batches that are under way begin again after this lock, so it is not taken in vain.
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id AND g.layout = p_layout;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT g.* INTO v_ranking FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id
    WHERE g.id = p_ranking_id AND g.layout = p_layout;
    IF NOT FOUND OR abs(p_to - p_from) <> 1 OR p_from NOT BETWEEN 1 AND 100 OR p_to NOT BETWEEN 1 AND 100 OR p_rows < 1 THEN
        RETURN NULL;
    END IF;

    v_players := (centile_store.bucket_totals(p_ranking_id))[p_from];

    -- The bound of the bucket ends the scan, so that it does not pass rows that are gone.
    EXECUTE format($query$
        WITH near AS MATERIALIZED (
            SELECT ctid AS place, lane, rank_key, tie_key, user_key, row_number() OVER (ORDER BY rank_key %3$s, tie_key %3$s, user_key %3$s) AS n
            FROM centile_store.%1$I
            WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) %4$s ($2, $3, $4)
            ORDER BY rank_key %3$s, tie_key %3$s, user_key %3$s LIMIT $5::bigint + 1
        ), gone AS (
            DELETE FROM centile_store.%1$I b USING near n WHERE b.ctid = n.place AND n.n <= $5
            RETURNING b.lane, b.rank_key, b.tie_key, b.user_key
        ), placed AS (
            INSERT INTO centile_store.%2$I (bucket, lane, ranking_id, rank_key, tie_key, user_key)
            SELECT $6, g.lane, $1, g.rank_key, g.tie_key, g.user_key FROM gone g
            RETURNING lane
        ), by_lane AS (
            SELECT p.lane, count(*)::integer AS rows FROM placed p GROUP BY p.lane
        )
        SELECT coalesce((SELECT sum(l.rows) FROM by_lane l), 0)::integer AS rows,
               ARRAY(SELECT l.lane FROM by_lane l ORDER BY l.lane) AS lanes, ARRAY(SELECT l.rows FROM by_lane l ORDER BY l.lane) AS by_lane,
               -- The rows on either side of the new boundary, the upper one first.
               u.rank_key, u.tie_key, u.user_key, l.rank_key AS lower_rank_key, l.tie_key AS lower_tie_key, l.n IS NOT NULL AND u.n IS NOT NULL AS has_rest
        FROM (SELECT max(n.n) FILTER (WHERE n.n <= $5) AS n FROM near n) last
        LEFT JOIN near u ON u.n = last.n + $7
        LEFT JOIN near l ON l.n = last.n + 1 - $7
        $query$, centile_store.bucket_table(v_ranking.buckets[p_from]), centile_store.bucket_table(v_ranking.buckets[p_to]),
        CASE WHEN v_up THEN 'DESC' ELSE 'ASC' END, CASE WHEN v_up THEN '<' ELSE '>=' END)
    INTO v_moved
    USING p_ranking_id, v_ranking.low_rank_keys[v_upper], v_ranking.low_tie_keys[v_upper], v_ranking.low_user_keys[v_upper], p_rows,
          v_ranking.buckets[p_to], CASE WHEN v_up THEN 0 ELSE 1 END;

    IF v_players IS NULL OR v_moved.rows <> least(p_rows, v_players) THEN
        RAISE EXCEPTION 'bucket % counts % players; of % rows % were found', v_ranking.buckets[p_from], v_players, p_rows, v_moved.rows
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;

    IF v_moved.has_rest THEN
        v_ranking.low_rank_keys[v_upper] := v_moved.rank_key;
        v_ranking.low_tie_keys[v_upper] := CASE WHEN v_moved.lower_rank_key = v_moved.rank_key THEN v_moved.tie_key ELSE -9223372036854775808 END;
        v_ranking.low_user_keys[v_upper] := CASE WHEN (v_moved.lower_rank_key, v_moved.lower_tie_key) = (v_moved.rank_key, v_moved.tie_key)
                                                 THEN v_moved.user_key ELSE -9223372036854775808 END;
    ELSIF v_up THEN
        -- All of them went: nothing is left between the bounds.
        v_ranking.low_rank_keys[p_to] := v_ranking.low_rank_keys[p_from];
        v_ranking.low_tie_keys[p_to] := v_ranking.low_tie_keys[p_from];
        v_ranking.low_user_keys[p_to] := v_ranking.low_user_keys[p_from];
    ELSE
        v_ranking.low_rank_keys[p_from] := coalesce(v_ranking.low_rank_keys[p_from + 1], 9223372036854775807);
        v_ranking.low_tie_keys[p_from] := coalesce(v_ranking.low_tie_keys[p_from + 1], 9223372036854775807);
        v_ranking.low_user_keys[p_from] := coalesce(v_ranking.low_user_keys[p_from + 1], 9223372036854775807);
    END IF;
    UPDATE centile_store.rankings g
    SET layout = g.layout + 1, laid_out_at = clock_timestamp(),
        low_rank_keys = v_ranking.low_rank_keys, low_tie_keys = v_ranking.low_tie_keys, low_user_keys = v_ranking.low_user_keys
    WHERE g.id = p_ranking_id;
    UPDATE centile_store.bucket_counts c
    SET counts = centile_store.add_at(c.counts, ARRAY[v_ranking.buckets[p_from] + 1, v_ranking.buckets[p_to] + 1], ARRAY[-m.rows, m.rows]),
        revision = c.revision + 1
    FROM unnest(v_moved.lanes, v_moved.by_lane) AS m (lane, rows)
    -- Of the versions that a snapshot held elsewhere keeps, the newest.
    WHERE c.ctid = (SELECT x.ctid FROM centile_store.bucket_counts x
                    WHERE x.ranking_id = p_ranking_id AND x.lane = m.lane ORDER BY x.revision DESC LIMIT 1);
    RETURN v_moved.rows;
END
$$;

COMMENT ON FUNCTION centile_store.move_boundary(bigint, integer, integer, integer, integer) IS
'Moves rows of a bucket to the one beside it, with the bound between them, and returns how many. Example: SELECT centile_store.move_boundary(g.id, g.layout, 1, 2, 1) FROM centile_store.rankings g WHERE g.id = 1;';
