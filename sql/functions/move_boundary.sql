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
    v_upper   integer := greatest(p_from, p_to);
BEGIN
    SELECT * INTO v_layout FROM centile_store.lock_layout(p_ranking_id, p_layout);
    IF v_layout.buckets IS NULL OR abs(p_to - p_from) <> 1 OR p_from NOT BETWEEN 1 AND 100 OR p_to NOT BETWEEN 1 AND 100 OR p_rows < 1 THEN
        RETURN NULL;
    END IF;
    v_players := (centile_store.bucket_totals(p_ranking_id))[p_from];
    SELECT * INTO v_moved FROM centile_store.move_rows(
        p_ranking_id, v_layout.buckets[p_from], v_layout.buckets[p_to], v_layout.bounds[v_upper], p_to > p_from, p_rows);
    IF v_players IS NULL OR v_moved.moved <> least(p_rows, v_players) THEN
        RAISE EXCEPTION 'bucket % counts % players; of % rows % were found', v_layout.buckets[p_from], v_players, p_rows, v_moved.moved
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    v_layout.bounds[v_upper] := CASE
        WHEN v_moved.lower IS NOT NULL AND v_moved.upper IS NOT NULL THEN centile_store.bound_above(v_moved.lower, v_moved.upper)
        -- All rows moved: nothing is left between the bounds.
        WHEN p_to > p_from THEN v_layout.bounds[p_from]
        WHEN p_from = 100 THEN centile_store.highest_key(centile_store.key_max())
        ELSE v_layout.bounds[p_from + 1] END;
    PERFORM centile_store.set_layout(p_ranking_id, v_layout.buckets, v_layout.bounds);
    PERFORM centile_store.change_counts(m.lane, ARRAY[p_ranking_id, p_ranking_id],
        ARRAY[v_layout.buckets[p_from], v_layout.buckets[p_to]], ARRAY[-m.rows, m.rows])
    FROM unnest(v_moved.lanes, v_moved.moved_by_lane) AS m (lane, rows);
    RETURN v_moved.moved;
END
$$;

COMMENT ON FUNCTION centile_store.move_boundary(bigint, integer, integer, integer, integer) IS
'Moves rows of a bucket to an adjacent one, with the bound between them, and returns their number. Example: SELECT centile_store.move_boundary(g.id, g.layout, 1, 2, 1) FROM centile_store.rankings g WHERE g.id = 1;';
