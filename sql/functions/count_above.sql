-- How many players of a ranking have a key above this one: whole buckets, whole stripes of its bucket, and rows of its
-- stripe. Stable, so that all of it sees the one snapshot of the calling statement.
CREATE FUNCTION centile_store.count_above(p_ranking_id bigint, p_rank_key bigint, p_tie_key bigint, p_user_key bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN (SELECT a.above + (SELECT coalesce(sum(c.players), 0)
                          FROM centile_store.bucket_counts b, unnest(b.counts[a.bucket + 2:]) AS c (players)
                          WHERE b.ranking_id = p_ranking_id)::bigint
        FROM centile_store.above_in_bucket(p_ranking_id, p_rank_key, p_tie_key, p_user_key) a);

COMMENT ON FUNCTION centile_store.count_above(bigint, bigint, bigint, bigint) IS
'Players of a ranking above a key. Example: SELECT centile_store.count_above(r.ranking_id, 100, 0, 0) FROM centile.periods r LIMIT 1;';
