-- Numbers the stripes of a bucket from 1, upwards. Under the exclusive structure lock.
CREATE FUNCTION centile_store.number_stripes(p_ranking_id bigint, p_bucket smallint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
BEGIN
    UPDATE centile_store.stripes s SET stripe = n.stripe
    FROM (SELECT rank_key, tie_key, user_key, row_number() OVER (ORDER BY rank_key, tie_key, user_key) AS stripe
          FROM centile_store.stripes WHERE ranking_id = p_ranking_id AND bucket = p_bucket) n
    WHERE s.ranking_id = p_ranking_id AND s.stripe <> n.stripe
      AND (s.rank_key, s.tie_key, s.user_key) = (n.rank_key, n.tie_key, n.user_key);
END
$$;

COMMENT ON FUNCTION centile_store.number_stripes(bigint, smallint) IS
'Numbers the stripes of a bucket anew. Example: SELECT centile_store.number_stripes(1, 50::smallint);';
