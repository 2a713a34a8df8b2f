-- The next keys of a ranking, best first, from a key (inclusive) downwards: bucket by bucket, leaving out empty ones.
CREATE FUNCTION centile_store.keys_down(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint, p_limit integer)
RETURNS TABLE (rank_key bigint, tie_key bigint, user_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_bucket integer;
    v_found  integer;
BEGIN
    FOR v_bucket IN
        SELECT t.place - 1 FROM unnest(centile_store.bucket_totals(p_ranking_id)) WITH ORDINALITY AS t (players, place)
        WHERE t.players > 0 AND t.place - 1 <= (
            SELECT s.bucket FROM centile_store.stripes s
            WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (p_rank_key, p_tie_key, p_user_key)
            ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1)
        ORDER BY t.place DESC
    LOOP
        EXIT WHEN p_limit <= 0;
        RETURN QUERY EXECUTE format(
            'SELECT rank_key, tie_key, user_key FROM centile_store.%I
             WHERE ranking_id = $1 AND (rank_key, tie_key, user_key) <= ($2, $3, $4)
             ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT $5', centile_store.bucket_table(v_bucket::smallint))
            USING p_ranking_id, p_rank_key, p_tie_key, p_user_key, p_limit;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        p_limit := p_limit - v_found;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.keys_down(bigint, bigint, bigint, bigint, integer) IS
'Keys of a ranking at and below a key, best first. Example: SELECT * FROM centile_store.keys_down(1, 100, 0, 0, 5);';
