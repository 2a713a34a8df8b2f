-- Keys of a ranking from one (inclusive) downwards, best first; a bucket that has too few is followed by the next lower one
-- with players. p_bucket is the key's, where the caller knows it.
CREATE OR REPLACE FUNCTION centile_store.keys_down(p_ranking_id bigint, p_bucket smallint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_limit integer)
RETURNS TABLE (rank_key bigint, tie_key bigint, user_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_found integer;
BEGIN
    IF p_bucket IS NULL THEN
        p_bucket := (SELECT b.bucket FROM centile_store.bucket_of(p_ranking_id, p_rank_key, p_tie_key, p_user_key) b);
    END IF;
    WHILE p_bucket IS NOT NULL AND p_limit > 0 LOOP
        RETURN QUERY SELECT * FROM centile_store.bucket_keys_down(p_bucket, p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_limit);
        GET DIAGNOSTICS v_found = ROW_COUNT;
        p_limit := p_limit - v_found;
        p_bucket := CASE WHEN p_limit > 0 THEN (
            SELECT t.bucket
            FROM centile_store.rankings g
            CROSS JOIN LATERAL unnest(g.buckets, centile_store.bucket_totals(g.id)) WITH ORDINALITY AS t (bucket, players, place)
            WHERE g.id = p_ranking_id AND t.players > 0 AND t.place < array_position(g.buckets, p_bucket)
            ORDER BY t.place DESC LIMIT 1) END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.keys_down(bigint, smallint, bigint, bigint, bigint, integer) IS
'Keys of a ranking at and below a key, best first. Example: SELECT * FROM centile_store.keys_down(1, NULL, 100, 0, 0, 5);';
