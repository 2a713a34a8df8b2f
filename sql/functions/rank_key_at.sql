-- In plpgsql, which keeps its plans.
CREATE OR REPLACE FUNCTION centile_store.rank_key_at(p_ranking_id bigint, p_period_id bigint, p_position bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF p_ranking_id IS NULL THEN
        RETURN (SELECT r.rank_key FROM centile_store.archive_rows(p_period_id, p_position, 1) r);
    END IF;
    RETURN (SELECT (k.key).rank_key FROM centile_store.key_at(p_ranking_id, p_position) k);
END
$$;

COMMENT ON FUNCTION centile_store.rank_key_at(bigint, bigint, bigint) IS
'The rank key at a position of a ranking, or of the archive of a period. Example: SELECT centile_store.rank_key_at(1, NULL, 3);';
