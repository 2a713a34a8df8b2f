-- Computes the entries of p_user_ids from the ledger, and takes the others from the ranking.
-- Computes all if p_user_ids is NULL, or has so many players that reading the whole ledger is
-- faster.
CREATE OR REPLACE FUNCTION centile_store.updated_entries(p_ranking_id bigint, p_period_id bigint, p_batches bigint[], p_user_ids bigint[])
RETURNS TABLE (user_id bigint, score bigint, rank_key bigint, tie_key bigint, reached_at timestamptz, only_zeros boolean)
LANGUAGE plpgsql STABLE ROWS 1000000
SET enable_nestloop = off
-- The caller may have turned it off.
SET enable_seqscan = on
AS $$
BEGIN
    IF cardinality(p_user_ids) > 1000 + centile_store.player_count(p_ranking_id) / 20 THEN
        p_user_ids := NULL;
    END IF;
    RETURN QUERY EXECUTE centile_store.entries_query(p_period_id,
        CASE WHEN p_batches IS NOT NULL THEN '$1' END, CASE WHEN p_user_ids IS NOT NULL THEN '$2' END,
        (SELECT g.players_of::text FROM centile_store.rankings g WHERE g.id = p_ranking_id))
    USING p_batches, p_user_ids;
    IF p_user_ids IS NOT NULL THEN
        RETURN QUERY
        SELECT l.user_id, l.score, l.rank_key, l.tie_key, l.reached_at, l.only_zeros
        FROM centile_store.leaderboard l LEFT JOIN unnest(p_user_ids) AS u (id) ON u.id = l.user_id
        WHERE l.ranking_id = p_ranking_id AND u.id IS NULL;
    END IF;
END
$$;

COMMENT ON FUNCTION centile_store.updated_entries(bigint, bigint, bigint[], bigint[]) IS
'Entries of a period: those of some users from the ledger as of a batch number per lane, the others from a ranking. Example: SELECT * FROM centile_store.updated_entries(1, 1, NULL, ''{1}'') ORDER BY rank_key DESC;';
