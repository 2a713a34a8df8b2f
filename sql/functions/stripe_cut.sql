-- Where to cut a piece of a size off the upper end of a stripe: its lowest row, and the one below. One row or none when the stripe has no more
-- than the piece. Rows that are passed over cost a third to a half of rows that are
-- numbered (4,000 rows: 3 to 4 ms, not 7 to 13; psql, 2026-11-22).
SELECT centile_store.create_bucket_function('stripe_cut',
    'p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_to_rank_key bigint, p_to_tie_key bigint, p_to_user_key bigint, p_size bigint',
    'TABLE (rank_key bigint, tie_key bigint, user_key bigint)',
    'RETURN QUERY
     SELECT rank_key, tie_key, user_key FROM %s
     WHERE ranking_id = p_ranking_id AND (rank_key, tie_key, user_key) >= (p_rank_key, p_tie_key, p_user_key)
       AND (rank_key, tie_key, user_key) < (p_to_rank_key, p_to_tie_key, p_to_user_key)
     ORDER BY rank_key DESC, tie_key DESC, user_key DESC OFFSET p_size - 1 LIMIT 2;');

COMMENT ON FUNCTION centile_store.stripe_cut(smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Where to cut a piece off the upper end of a stripe. Example: SELECT * FROM centile_store.stripe_cut(50::smallint, 1, -1000, 0, 0, 1000, 0, 0, 2);';
