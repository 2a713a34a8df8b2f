-- Gives an empty bucket a new place, beside another one with players. Its range falls to the place
-- below it. Below the other one it gets what lies under that one's lowest player; above it gets no
-- range, until rows are moved into it. No row is touched. False, and nothing done, when the layout is
-- another by now, the ranking is not its period's any more, or the bucket is not empty.
CREATE OR REPLACE FUNCTION centile_store.reposition_bucket(p_ranking_id bigint, p_layout integer, p_place integer, p_beside integer, p_above boolean)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    v_ranking centile_store.rankings;
    v_players bigint[];
    v_bucket  smallint;
    v_beside  integer := p_beside - CASE WHEN p_place < p_beside THEN 1 ELSE 0 END;
    v_first   record;
BEGIN
    -- Batches that are under way begin again after this lock, so it is not taken in vain.
    PERFORM centile_store.lock_structure(g.board_id, true) FROM centile_store.rankings g WHERE g.id = p_ranking_id AND g.layout = p_layout;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT g.* INTO v_ranking FROM centile_store.periods p JOIN centile_store.rankings g ON g.id = p.ranking_id
    WHERE g.id = p_ranking_id AND g.layout = p_layout;
    IF NOT FOUND OR p_place = p_beside OR p_place NOT BETWEEN 1 AND 100 OR p_beside NOT BETWEEN 1 AND 100 THEN
        RETURN false;
    END IF;
    v_players := centile_store.bucket_totals(p_ranking_id);
    v_bucket := v_ranking.buckets[p_place];
    SELECT * INTO v_first FROM centile_store.key_in_bucket(v_ranking.buckets[p_beside], p_ranking_id, 0, true);
    IF v_players[p_place] > 0 OR v_players[p_beside] = 0 THEN
        RETURN false;
    ELSIF v_players[p_place] IS DISTINCT FROM 0 OR v_first.rank_key IS NULL
        OR EXISTS (SELECT FROM centile_store.key_in_bucket(v_bucket, p_ranking_id, 0, true)) THEN
        RAISE EXCEPTION 'buckets % and % do not have as many rows as they count', v_bucket, v_ranking.buckets[p_beside]
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;

    v_ranking.buckets := v_ranking.buckets[:p_place - 1] || v_ranking.buckets[p_place + 1:];
    v_ranking.low_rank_keys := v_ranking.low_rank_keys[:p_place - 1] || v_ranking.low_rank_keys[p_place + 1:];
    v_ranking.low_tie_keys := v_ranking.low_tie_keys[:p_place - 1] || v_ranking.low_tie_keys[p_place + 1:];
    v_ranking.low_user_keys := v_ranking.low_user_keys[:p_place - 1] || v_ranking.low_user_keys[p_place + 1:];
    -- The lowest place begins at the least key.
    v_ranking.low_rank_keys[1] := -9223372036854775808;
    v_ranking.low_tie_keys[1] := -9223372036854775808;
    v_ranking.low_user_keys[1] := -9223372036854775808;

    v_ranking.buckets := CASE WHEN p_above THEN v_ranking.buckets[:v_beside] || v_bucket || v_ranking.buckets[v_beside + 1:]
                              ELSE v_ranking.buckets[:v_beside - 1] || v_bucket || v_ranking.buckets[v_beside:] END;
    IF NOT p_above AND v_ranking.low_rank_keys[v_beside] < v_first.rank_key THEN
        -- Nobody of this rank key is in a lower bucket.
        v_first.tie_key := -9223372036854775808;
        v_first.user_key := -9223372036854775808;
    ELSIF p_above THEN
        v_first.rank_key := coalesce(v_ranking.low_rank_keys[v_beside + 1], 9223372036854775807);
        v_first.tie_key := coalesce(v_ranking.low_tie_keys[v_beside + 1], 9223372036854775807);
        v_first.user_key := coalesce(v_ranking.low_user_keys[v_beside + 1], 9223372036854775807);
    END IF;
    UPDATE centile_store.rankings g
    SET layout = g.layout + 1, laid_out_at = clock_timestamp(), buckets = v_ranking.buckets,
        low_rank_keys = v_ranking.low_rank_keys[:v_beside] || v_first.rank_key || v_ranking.low_rank_keys[v_beside + 1:],
        low_tie_keys = v_ranking.low_tie_keys[:v_beside] || v_first.tie_key || v_ranking.low_tie_keys[v_beside + 1:],
        low_user_keys = v_ranking.low_user_keys[:v_beside] || v_first.user_key || v_ranking.low_user_keys[v_beside + 1:]
    WHERE g.id = p_ranking_id;
    RETURN true;
END
$$;

COMMENT ON FUNCTION centile_store.reposition_bucket(bigint, integer, integer, integer, boolean) IS
'Gives an empty bucket a new place beside another one. Example: SELECT centile_store.reposition_bucket(g.id, g.layout, 100, 1, true) FROM centile_store.rankings g WHERE g.id = 1;';
