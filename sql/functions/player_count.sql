-- Players of a ranking.
-- In plpgsql, which keeps its plans: a SQL function with a sub-select is planned anew by every statement that calls it.
CREATE FUNCTION centile_store.player_count(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT coalesce(sum(c.players), 0)::bigint FROM unnest(centile_store.bucket_totals(p_ranking_id)) AS c (players));
END
$$;

COMMENT ON FUNCTION centile_store.player_count(bigint) IS
'Players of a ranking. Example: SELECT centile_store.player_count(1);';
