-- Up to p_limit keys above a key, worst first, or at and below it, best first. A bucket with too
-- few is followed by the next one with players. p_bucket is the bucket of the key, if the caller
-- knows it.
CREATE OR REPLACE FUNCTION centile_store.keys(p_ranking_id bigint, p_bucket smallint, p_key centile_store.rank_key, p_upwards boolean, p_limit integer)
RETURNS TABLE (rank_key bigint, tie_key bigint, user_key bigint)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    v_bucket smallint := coalesce(p_bucket, (SELECT b.bucket FROM centile_store.bucket_of(p_ranking_id, p_key.rank_key, p_key.tie_key, p_key.user_key) b));
    v_found  integer;
BEGIN
    WHILE v_bucket IS NOT NULL AND p_limit > 0 LOOP
        RETURN QUERY
        SELECT k.rank_key, k.tie_key, k.user_key
        FROM centile_store.bucket_keys_around(v_bucket, p_ranking_id, p_key,
            CASE WHEN p_upwards THEN p_limit ELSE 0 END, CASE WHEN p_upwards THEN 0 ELSE p_limit END) k;
        GET DIAGNOSTICS v_found = ROW_COUNT;
        p_limit := p_limit - v_found;
        v_bucket := CASE WHEN p_limit > 0 AND v_bucket < 100 THEN (
            SELECT t.bucket
            FROM centile_store.rankings g
            CROSS JOIN LATERAL unnest(g.buckets, centile_store.bucket_totals(g.id)) WITH ORDINALITY AS t (bucket, players, place)
            CROSS JOIN LATERAL (SELECT CASE WHEN p_upwards THEN 1 ELSE -1 END * (t.place - array_position(g.buckets, v_bucket)) AS steps) s
            WHERE g.id = p_ranking_id AND t.players > 0 AND s.steps > 0
            ORDER BY s.steps LIMIT 1) END;
    END LOOP;
END
$$;

COMMENT ON FUNCTION centile_store.keys(bigint, smallint, centile_store.rank_key, boolean, integer) IS
'Keys of a ranking above a key, or at and below it. Example: SELECT * FROM centile_store.keys(1, NULL, (100, 0, 0), false, 5);';
