-- The key some places above a key (or the best one, when there are fewer), and how many places that was.
CREATE FUNCTION centile_store.key_climb(p_ranking_id bigint, INOUT rank_key bigint, INOUT tie_key bigint, INOUT user_key bigint, INOUT steps integer)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_variable
DECLARE
    v_wanted integer := steps;
    v_bucket smallint := (SELECT s.bucket FROM centile_store.stripe_of(p_ranking_id, rank_key, tie_key, user_key) s);
    v_key    record;
BEGIN
    steps := 0;
    WHILE v_bucket IS NOT NULL AND steps < v_wanted LOOP
        FOR v_key IN
            SELECT * FROM centile_store.bucket_keys_up(v_bucket, p_ranking_id, rank_key, tie_key, user_key, v_wanted - steps)
        LOOP
            rank_key := v_key.rank_key;
            tie_key := v_key.tie_key;
            user_key := v_key.user_key;
            steps := steps + 1;
        END LOOP;
        v_bucket := CASE WHEN steps < v_wanted THEN (
            SELECT t.place - 1 FROM unnest(centile_store.bucket_totals(p_ranking_id)) WITH ORDINALITY AS t (players, place)
            WHERE t.players > 0 AND t.place - 1 > v_bucket
            ORDER BY t.place LIMIT 1) END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.key_climb(bigint, bigint, bigint, bigint, integer) IS
'The key some places above a key. Example: SELECT * FROM centile_store.key_climb(1, 100, 0, 0, 4);';
