-- The next keys of a ranking, best first, from a key (inclusive) downwards: from its bucket, and on from lower ones while
-- there are too few.
CREATE FUNCTION centile_store.keys_down(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_limit integer)
RETURNS TABLE (rank_key bigint, tie_key bigint, user_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_bucket smallint := (SELECT s.bucket FROM centile_store.stripe_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key) s);
    v_found  integer;
BEGIN
    WHILE v_bucket IS NOT NULL AND p_limit > 0 LOOP
        RETURN QUERY SELECT * FROM centile_store.bucket_keys_down(v_bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_limit);
        GET DIAGNOSTICS v_found = ROW_COUNT;
        p_limit := p_limit - v_found;
        v_bucket := CASE WHEN p_limit > 0 THEN (
            SELECT t.place - 1 FROM unnest(centile_store.bucket_totals(p_ranking_id)) WITH ORDINALITY AS t (players, place)
            WHERE t.players > 0 AND t.place <= v_bucket
            ORDER BY t.place DESC LIMIT 1) END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.keys_down(bigint, bigint, bigint, bigint, integer) IS
'Keys of a ranking at and below a key, best first. Example: SELECT * FROM centile_store.keys_down(1, 100, 0, 0, 5);';
