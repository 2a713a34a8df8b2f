-- Moves the boundary between two buckets beside each other: up to p_rows rows of the bucket at
-- place p_from, those nearest to place p_to, go there, with counts and bound. Returns the number of
-- rows. NULL if the layout has changed, or the ranking is no longer its period's.
CREATE OR REPLACE FUNCTION centile_store.move_boundary(p_ranking_id bigint, p_layout integer, p_from integer, p_to integer, p_rows integer)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_layout  record;
    v_moved   record;
    v_players bigint;
    v_up      boolean := p_to > p_from;
    v_upper   integer := greatest(p_from, p_to);
BEGIN
    SELECT * INTO v_layout FROM centile_store.lock_layout(p_ranking_id, p_layout);
    IF v_layout.buckets IS NULL OR abs(p_to - p_from) <> 1 OR p_from NOT BETWEEN 1 AND 100 OR p_to NOT BETWEEN 1 AND 100 OR p_rows < 1 THEN
        RETURN NULL;
    END IF;
    v_players := (centile_store.bucket_totals(p_ranking_id))[p_from];
    -- Reads one row more than it moves: "lower" and "upper" are the rows on both sides of the new
    -- boundary; NULL if all rows moved. The old bound ends the scan, so that it does not pass rows
    -- that are gone.
    EXECUTE format($query$
        WITH near AS MATERIALIZED (
            SELECT ctid AS place, lane, rank_key, tie_key, user_key, row_number() OVER (ORDER BY rank_key %3$s, tie_key %3$s, user_key %3$s) AS n
            FROM centile_store.%1$I
            WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) %4$s (($2).rank_key, ($2).tie_key, ($2).user_key)
            ORDER BY rank_key %3$s, tie_key %3$s, user_key %3$s LIMIT $3::bigint + 1
        ), gone AS (
            DELETE FROM centile_store.%1$I b USING near n WHERE b.ctid = n.place AND n.n <= $3
            RETURNING b.lane, b.rank_key, b.tie_key, b.user_key
        ), placed AS (
            INSERT INTO centile_store.%2$I (bucket, lane, ranking_id, rank_key, tie_key, user_key)
            SELECT $4, g.lane, $1, g.rank_key, g.tie_key, g.user_key FROM gone g
            RETURNING lane
        ), by_lane AS (
            SELECT p.lane, count(*)::integer AS rows FROM placed p GROUP BY p.lane
        )
        SELECT coalesce((SELECT sum(l.rows) FROM by_lane l), 0)::integer AS rows,
               ARRAY(SELECT l.lane FROM by_lane l ORDER BY l.lane) AS lanes, ARRAY(SELECT l.rows FROM by_lane l ORDER BY l.lane) AS rows_by_lane,
               (l.rank_key, l.tie_key, l.user_key)::centile_store.rank_key AS lower, (u.rank_key, u.tie_key, u.user_key)::centile_store.rank_key AS upper
        FROM (SELECT max(n.n) FILTER (WHERE n.n <= $3) AS n FROM near n) last
        LEFT JOIN near u ON u.n = last.n + $5
        LEFT JOIN near l ON l.n = last.n + 1 - $5
        $query$, centile_store.bucket_table(v_layout.buckets[p_from]), centile_store.bucket_table(v_layout.buckets[p_to]),
        CASE WHEN v_up THEN 'DESC' ELSE 'ASC' END, CASE WHEN v_up THEN '<' ELSE '>=' END)
    INTO v_moved
    USING p_ranking_id, v_layout.bounds[v_upper], p_rows, v_layout.buckets[p_to], CASE WHEN v_up THEN 0 ELSE 1 END;
    IF v_players IS NULL OR v_moved.rows <> least(p_rows, v_players) THEN
        RAISE EXCEPTION 'bucket % counts % players; of % rows % were found', v_layout.buckets[p_from], v_players, p_rows, v_moved.rows
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    v_layout.bounds[v_upper] := CASE
        WHEN v_moved.lower IS NOT NULL AND v_moved.upper IS NOT NULL THEN centile_store.bound_above(v_moved.lower, v_moved.upper)
        -- All rows moved: nothing is left between the bounds.
        WHEN v_up THEN v_layout.bounds[p_from]
        WHEN p_from = 100 THEN centile_store.highest_key(centile_store.key_max())
        ELSE v_layout.bounds[p_from + 1] END;
    PERFORM centile_store.set_layout(p_ranking_id, v_layout.buckets, v_layout.bounds);
    PERFORM centile_store.change_counts(m.lane, NULL, ARRAY[p_ranking_id, p_ranking_id],
        ARRAY[v_layout.buckets[p_from], v_layout.buckets[p_to]], ARRAY[-m.rows, m.rows])
    FROM unnest(v_moved.lanes, v_moved.rows_by_lane) AS m (lane, rows);
    RETURN v_moved.rows;
END
$$;

COMMENT ON FUNCTION centile_store.move_boundary(bigint, integer, integer, integer, integer) IS
'Moves rows of a bucket to an adjacent one, with the bound between them, and returns their number. Example: SELECT centile_store.move_boundary(g.id, g.layout, 1, 2, 1) FROM centile_store.rankings g WHERE g.id = 1;';
