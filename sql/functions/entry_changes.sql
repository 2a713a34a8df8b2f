-- For acts that need the whole history of a player: void, reset, ban, unban, corrections, accepted
-- events, and rows that arrive while a ranking is built.
CREATE OR REPLACE FUNCTION centile_store.entry_changes(p_ranking_ids bigint[], p_user_ids bigint[]) RETURNS centile_store.entry_change[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_custom_plan SET enable_seqscan = off
AS $$
BEGIN
    RETURN ARRAY(
        SELECT (r.id, x.user_id, x.was_rank_key, x.was_tie_key, x.rank_key, x.tie_key, x.only_zeros)::centile_store.entry_change
        FROM centile_store.rankings r
        CROSS JOIN LATERAL (
            SELECT coalesce(e.user_id, l.user_id) AS user_id, l.rank_key AS was_rank_key, l.tie_key AS was_tie_key,
                   e.rank_key, e.tie_key, e.only_zeros
            FROM centile.entries_from_ledger(r.period_id, NULL, p_user_ids, r.players_of) e
            FULL JOIN (SELECT * FROM centile_store.leaderboard l WHERE l.ranking_id = r.id AND l.user_id = ANY (p_user_ids)) l
                ON l.user_id = e.user_id) x
        WHERE r.id = ANY (p_ranking_ids));
END
$$;

COMMENT ON FUNCTION centile_store.entry_changes(bigint[], bigint[]) IS
'Changes that turn the stored entries of players in some rankings into those computed from the ledger, unchanged entries included. Example: SELECT cardinality(centile_store.entry_changes(''{1}'', ''{1,2}''));';
