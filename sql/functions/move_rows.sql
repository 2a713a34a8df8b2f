-- Moves the rows of a stripe, which has so many, to another bucket, and returns how many it moved. One more than the stripe has are
-- looked at, from its end down: by its lower bound alone a scan would not end among equals (see count_in_stripe).
SELECT centile_store.create_bucket_function('move_rows',
    'p_to_bucket smallint, p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint,
     p_to_rank_key bigint, p_to_tie_key bigint, p_to_user_key bigint, p_players bigint', 'SETOF bigint',
    'RETURN QUERY
     WITH near AS MATERIALIZED (
         SELECT ctid AS place, rank_key, tie_key, user_key FROM %1$s
         WHERE ranking_id = p_ranking_id AND (rank_key, tie_key, user_key) < (p_to_rank_key, p_to_tie_key, p_to_user_key)
         ORDER BY rank_key DESC, tie_key DESC, user_key DESC LIMIT p_players + 1
     ), moved AS (
         DELETE FROM %1$s b USING near n
         WHERE b.ctid = n.place AND (n.rank_key, n.tie_key, n.user_key) >= (p_rank_key, p_tie_key, p_user_key)
         RETURNING b.rank_key, b.tie_key, b.user_key
     ), placed AS (
         INSERT INTO centile_store.leaderboard_bucket (bucket, ranking_id, rank_key, tie_key, user_key)
         SELECT p_to_bucket, p_ranking_id, m.rank_key, m.tie_key, m.user_key FROM moved m
         RETURNING 1
     )
     SELECT count(*) FROM placed;', 'VOLATILE');

COMMENT ON FUNCTION centile_store.move_rows(smallint, smallint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Moves the rows of a stripe to another bucket. Example: SELECT centile_store.move_rows(50::smallint, 51::smallint, 1, 1000000, 0, 0, 2000000, 0, 0, 10);';
