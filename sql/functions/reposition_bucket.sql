-- Gives an empty bucket a new place beside a bucket with players. The place below takes over its
-- old range. Below the other bucket it gets the range under that one's lowest player; above it gets
-- no range until rows move in. No row changes. False if the layout has changed, the ranking is no
-- longer its period's, or the bucket is not empty.
CREATE OR REPLACE FUNCTION centile_store.reposition_bucket(p_ranking_id bigint, p_layout integer, p_place integer, p_beside integer, p_above boolean)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_layout  record;
    v_players bigint[];
    v_bucket  smallint;
    -- Place of the other bucket once the old place is removed.
    v_beside  integer := p_beside - CASE WHEN p_place < p_beside THEN 1 ELSE 0 END;
    v_buckets smallint[];
    v_bounds  centile_store.rank_key[];
    v_first   centile_store.rank_key;
BEGIN
    SELECT * INTO v_layout FROM centile_store.lock_layout(p_ranking_id, p_layout);
    IF v_layout.buckets IS NULL OR p_place = p_beside OR p_place NOT BETWEEN 1 AND 100 OR p_beside NOT BETWEEN 1 AND 100 THEN
        RETURN false;
    END IF;
    v_players := centile_store.bucket_totals(p_ranking_id);
    v_bucket := v_layout.buckets[p_place];
    SELECT * INTO v_first FROM centile_store.key_in_bucket(v_layout.buckets[p_beside], p_ranking_id, 0, true);
    IF v_players[p_place] > 0 OR v_players[p_beside] = 0 THEN
        RETURN false;
    ELSIF v_players[p_place] IS DISTINCT FROM 0 OR v_first.rank_key IS NULL
        OR EXISTS (SELECT FROM centile_store.key_in_bucket(v_bucket, p_ranking_id, 0, true)) THEN
        RAISE EXCEPTION 'buckets % and % do not have as many rows as they count', v_bucket, v_layout.buckets[p_beside]
            USING ERRCODE = 'CB900', HINT = 'Run centile rebuild: it computes the ranking from the ledger.';
    END IF;
    v_buckets := v_layout.buckets[:p_place - 1] || v_layout.buckets[p_place + 1:];
    v_bounds := v_layout.bounds[:p_place - 1] || v_layout.bounds[p_place + 1:];
    v_bounds[1] := centile_store.lowest_key(centile_store.key_min());
    v_buckets := CASE WHEN p_above THEN v_buckets[:v_beside] || v_bucket || v_buckets[v_beside + 1:]
                      ELSE v_buckets[:v_beside - 1] || v_bucket || v_buckets[v_beside:] END;
    IF p_above THEN
        v_first := coalesce(v_bounds[v_beside + 1], centile_store.highest_key(centile_store.key_max()));
    ELSIF (v_bounds[v_beside]).rank_key < v_first.rank_key THEN
        -- No lower bucket has players of this rank key.
        v_first := centile_store.lowest_key(v_first.rank_key);
    END IF;
    PERFORM centile_store.set_layout(p_ranking_id, v_buckets, v_bounds[:v_beside] || v_first || v_bounds[v_beside + 1:]);
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.reposition_bucket(bigint, integer, integer, integer, boolean) IS
'Moves an empty bucket to a new place beside another one. Example: SELECT centile_store.reposition_bucket(g.id, g.layout, 100, 1, true) FROM centile_store.rankings g WHERE g.id = 1;';
