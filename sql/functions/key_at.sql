-- From a position to the key there: the bucket by the buckets' counts, and within it a walk from
-- the nearer end. So page 100,000 costs about what page 1 costs.
CREATE OR REPLACE FUNCTION centile_store.key_at(p_ranking_id bigint, p_position bigint)
RETURNS TABLE (bucket smallint, rank_key bigint, tie_key bigint, user_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_players bigint[] := centile_store.bucket_totals(p_ranking_id);
    v_left    bigint := p_position;
    v_place   integer := 100;
    v_bucket  smallint;
    v_is_low  boolean;
BEGIN
    IF v_players IS NULL OR p_position < 1 THEN
        RETURN;
    END IF;
    WHILE v_left > v_players[v_place] LOOP
        v_left := v_left - v_players[v_place];
        v_place := v_place - 1;
        IF v_place = 0 THEN
            RETURN;
        END IF;
    END LOOP;
    IF v_players[v_place] IS NULL THEN
        RAISE EXCEPTION 'the counts of ranking % are incomplete', p_ranking_id
            USING ERRCODE = 'CB900', HINT = 'The derived data of a ranking is damaged; rebuild it from the ledger.';
    END IF;
    SELECT g.buckets[v_place] INTO v_bucket FROM centile_store.rankings g WHERE g.id = p_ranking_id;
    v_is_low := 2 * v_left > v_players[v_place];
    RETURN QUERY
    SELECT v_bucket, k.rank_key, k.tie_key, k.user_key
    FROM centile_store.key_in_bucket(v_bucket, p_ranking_id,
        CASE WHEN v_is_low THEN v_players[v_place] - v_left ELSE v_left - 1 END, v_is_low) k;
END
$$;

COMMENT ON FUNCTION centile_store.key_at(bigint, bigint) IS
'The key at a position of a ranking; no row beyond the last. Example: SELECT * FROM centile_store.key_at(1, 3);';
