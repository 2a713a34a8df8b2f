-- Where to cut so many pieces of a size off the upper end of a stripe: their lower bounds, highest first, and the rows that were found, one
-- more than the pieces hold when all is well. A piece begins at its lowest key; where nobody below shares that rank key, or that
-- time, at all of these (see count_in_stripe).
SELECT centile_store.create_bucket_function('stripe_cuts',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_to_rank_key bigint, p_to_tie_key bigint, p_to_user_key bigint, p_size bigint, p_pieces bigint',
    'TABLE (found bigint, rank_keys bigint[], tie_keys bigint[], user_keys bigint[])',
    'RETURN QUERY
     SELECT count(*),
            array_agg(r.rank_key) FILTER (WHERE r.is_cut),
            array_agg(CASE WHEN r.rank_key_below = r.rank_key THEN r.tie_key ELSE -9223372036854775808 END) FILTER (WHERE r.is_cut),
            array_agg(CASE WHEN (r.rank_key_below, r.tie_key_below) = (r.rank_key, r.tie_key) THEN r.user_key ELSE -9223372036854775808 END)
                FILTER (WHERE r.is_cut)
     FROM (SELECT k.*, lead(k.rank_key) OVER () AS rank_key_below, lead(k.tie_key) OVER () AS tie_key_below,
                  row_number() OVER () %% p_size = 0 AND row_number() OVER () <= p_size * p_pieces AS is_cut
           FROM (SELECT rank_key, tie_key, user_key FROM %s
                 WHERE ranking_id = p_ranking_id AND (rank_key, tie_key, user_key) >= (p_rank_key, p_tie_key, p_user_key)
                   AND (rank_key, tie_key, user_key) < (p_to_rank_key, p_to_tie_key, p_to_user_key)
                 ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT p_size * p_pieces + 1) k) r;');

COMMENT ON FUNCTION centile_store.stripe_cuts(smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Where to cut pieces off the upper end of a stripe. Example: SELECT * FROM centile_store.stripe_cuts(50::smallint, 1, -1000, 0, 0, 1000, 0, 0, 2, 1);';
