-- The stripe that a key belongs to, its lower bound, and that of the next one (the greatest key there can be, after the last).
CREATE FUNCTION centile_store.stripe_of(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint)
RETURNS TABLE (bucket smallint, stripe integer, low_rank_key bigint, low_tie_key bigint, low_user_key bigint, next_rank_key bigint, next_tie_key bigint, next_user_key bigint)
LANGUAGE sql STABLE
AS $$
    SELECT s.bucket, s.stripe, s.rank_key, s.tie_key, s.user_key, coalesce(n.rank_key, 9223372036854775807),
           coalesce(n.tie_key, 9223372036854775807), coalesce(n.user_key, 9223372036854775807)
    FROM (
        SELECT s.bucket, s.stripe, s.rank_key, s.tie_key, s.user_key FROM centile_store.stripes s
        WHERE s.ranking_id = p_ranking_id AND (s.rank_key, s.tie_key, s.user_key) <= (p_rank_key, p_tie_key, p_user_key)
        ORDER BY s.rank_key DESC, s.tie_key DESC, s.user_key DESC LIMIT 1) s
    LEFT JOIN LATERAL (
        SELECT n.rank_key, n.tie_key, n.user_key FROM centile_store.stripes n
        WHERE n.ranking_id = p_ranking_id AND (n.rank_key, n.tie_key, n.user_key) > (p_rank_key, p_tie_key, p_user_key)
        ORDER BY n.rank_key, n.tie_key, n.user_key LIMIT 1) n ON true
$$;

COMMENT ON FUNCTION centile_store.stripe_of(bigint, bigint, bigint, bigint) IS
'Bucket and stripe of a key, and where the next stripe begins. Example: SELECT bucket, stripe FROM centile_store.stripe_of(1, 100, 0, 0);';
