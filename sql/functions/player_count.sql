-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.player_count(p_ranking_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT coalesce(sum(n), 0)::bigint FROM unnest(centile_store.bucket_totals(p_ranking_id)) AS n);
END
$$;

COMMENT ON FUNCTION centile_store.player_count(bigint) IS
'Players of a ranking. Example: SELECT centile_store.player_count(1);';
