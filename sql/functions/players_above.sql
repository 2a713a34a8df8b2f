-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.players_above(p_ranking_id bigint, p_period_id bigint, p_keys centile_store.rank_key[]) RETURNS bigint[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    v_above bigint[] := '{}';
    v_key   centile_store.rank_key;
BEGIN
    IF p_ranking_id IS NULL THEN
        RETURN centile_store.archive_above(p_period_id, p_keys);
    END IF;
    FOREACH v_key IN ARRAY p_keys LOOP
        v_above := v_above || centile_store.count_above(p_ranking_id, v_key);
    END LOOP;
    RETURN v_above;
END
$$;

COMMENT ON FUNCTION centile_store.players_above(bigint, bigint, centile_store.rank_key[]) IS
'Players above each of these keys, in a ranking or the archive of a period. Example: SELECT centile_store.players_above(1, NULL, ARRAY[centile_store.lowest_key(100)]);';
