-- Players of a ranking.
CREATE FUNCTION centile_store.player_count(p_ranking_id bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN (SELECT coalesce(sum(c.players), 0)::bigint FROM centile_store.bucket_counts b, unnest(b.counts) AS c (players)
        WHERE b.ranking_id = p_ranking_id);

COMMENT ON FUNCTION centile_store.player_count(bigint) IS
'Players of a ranking. Example: SELECT centile_store.player_count(1);';
